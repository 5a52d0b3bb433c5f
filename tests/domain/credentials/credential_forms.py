r"""Ways in which people and programs write a credential, by family, each with values by chance.

A form is a template. ``{p}`` is a password, ``{w}`` a phrase of several words, ``{n}`` a PIN; ``<a36>`` stands for 36
random letters and digits, ``<b…>`` for those of base64url, ``<l…>`` lower case, ``<u…>`` upper case, ``<h…>`` hex and
``<d…>`` digits. ``{v}`` is a token of a known vendor, and ``{v:base64}`` that token written in another way.
"""

from __future__ import annotations

import base64
import hashlib
import re
import string
from dataclasses import dataclass
from random import Random
from urllib.parse import quote

WORDS = """
marble otter candle river saddle thunder pocket violet anchor bramble copper dragon ember falcon garnet harbor
island jungle kettle lantern meadow nectar orchid pebble quartz ribbon salmon timber umbra velvet walnut
yonder
""".split()  # noqa: SIM905 - a table
ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "b": string.ascii_letters + string.digits + "-_",
    "s": string.ascii_letters + string.digits + "+/",
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "h": "0123456789abcdef",
    "d": string.digits,
}

# ruff: noqa: RUF001
NAMED = r'''
#define API_KEY "<a32>"
#define DB_PASSWORD "{p}"
let apiKey: String = "<a24>"
let password: String = "{p}"
static let clientSecret = "{p}"
const secretKey: string = '{p}';
private static final String PASSWORD = "{p}";
val authToken: String? = "<h32>"
var password string = "{p}"
password := "{p}"
$password = '{p}';
my $passwd = "{p}";
@password = '{p}'
:password => "{p}",
'password' => '{p}',
Dim password As String = "{p}"
let password = "{p}"
let token: &str = "<a30>";
char *password = "{p}";
const char passwd[] = "{p}";
std::string api_key{"<a28>"};
password <- "{p}"
(def password "{p}")
(setq smtp-password "{p}")
password = """{p}"""
password = r'{p}'
password = f"{p}"
password = b"{p}"
password: str = "{p}"
"password": "{p}"
{"user": "me", "password": "{p}"}
{\"password\": \"{p}\"}
{'pwd': '{p}', 'host': 'db'}
password: {p}
password: '{p}'
    password: >-\n      {p}
password:\n  {p}
DB_PASSWORD={p}
DB_PASS="{p}"
export DB_PASSWORD={p}
export SECRET_KEY_BASE=<h64>
export API_TOKEN='{p}'
declare -x MYSQL_PWD="{p}"
setx DB_PASSWORD {p}
setx API_KEY "{p}" /M
set DB_PASSWORD={p}
$env:DB_PASSWORD = "{p}"
setenv DB_PASSWORD {p}
set -gx DB_PASSWORD {p}
ENV DB_PASSWORD {p}
ENV DB_PASSWORD={p}
ARG NPM_TOKEN={p}
  - DB_PASSWORD={p}
  - name: DB_PASSWORD\n    value: "{p}"
  - name: API_TOKEN\n    value: {p}
variable "db_password" {\n  type = string\n  default = "{p}"\n}
password = "{p}"
secret_string = "{p}"
resource "x" "y" {\n  master_password = "{p}"\n}
**Password:** {p}
**Password**: `{p}`
*Password*: {p}
- Password: `{p}`
Password — {p}
Password - {p}
Password → {p}
> password: {p}
| Password | {p} |
| user | admin |\n| password | {p} |
| user | password |\n|---|---|\n| admin | {p} |
user,password\nadmin,{p}
name;passwort\nadmin;{p}
user\tpassword\nadmin\t{p}
"user","password"\n"admin","{p}"
kind: Secret\ndata:\n  password: {p:base64}
kind: Secret\nstringData:\n  config: {p}
apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  value: {p:base64}
<password>{p}</password>
<add key="ApiKey" value="{p}" />
<property name="hibernate.connection.password">{p}</property>
<property name="password" value="{p}"/>
<string name="api_key">{p}</string>
<key>password</key>\n<string>{p}</string>
<input type="password" value="{p}">
spring.datasource.password={p}
spring.mail.password: {p}
jdbc.password = {p}
[client]\nuser=root\npassword={p}
//registry.example.org/:_authToken={p}
//registry.example.org/:_password={p:base64}
_auth={p:base64}
password "{p}"
requirepass {p}
masterauth {p}
ansible_ssh_pass: {p}
ansible_become_password={p}
vault_pass={p}
smtp_pass: "{p}"
secret: {p}
pwd={p};
passphrase="{p}"
pass: {p}
apikey: {p}
access_key: {p}
privateKey: "{p}"
signing_secret={p}
encryption_key = "{p}"
webhook_secret: {p}
cookie_secret = '{p}'
SECRET_KEY = 'django-insecure-<a50>'
credentials = ("admin", "{p}")
credentials: {user: admin, pass: {p}}
auth = {"user": "x", "pass": "{p}"}
os.environ["DB_PASSWORD"] = "{p}"
process.env.API_SECRET = '{p}'
ENV['DB_PASSWORD'] = '{p}'
System.setProperty("db.password", "{p}");
config.set('password', '{p}')
define('DB_PASSWORD', '{p}');
assert password == "{p}"
if token != "{p}":
password="${DB_PASSWORD:-{p}}"
os.getenv("DB_PASSWORD", "{p}")
process.env.DB_PASSWORD || "{p}"
contraseña: {p}
mot_de_passe = "{p}"
passwort={p}
senha: {p}
пароль: {p}
密码：{p}
パスワード: {p}
hasło: {p}
wachtwoord: {p}
'''
POSITIONAL = r"""
login('alice', '{p}')
login("alice", "{p}")
client.login("me@example.org", "{p}")
smtp.login("me@example.org", "{p}")
ftp.login('alice', '{p}')
authenticate("alice", "{p}")
HTTPBasicAuth("alice", "{p}")
auth=("alice", "{p}")
auth=('alice', '{p}')
.auth('alice', '{p}')
.basic_auth("alice", Some("{p}"))
create_user('alice', 'a@example.org', '{p}')
page.fill('#password', '{p}')
page.type('input[type=password]', '{p}');
cy.get('#password').type('{p}')
driver.find_element(By.ID, "password").send_keys("{p}")
CREATE USER bob IDENTIFIED BY '{p}';
ALTER USER 'root'@'localhost' IDENTIFIED BY '{p}';
IDENTIFIED WITH mysql_native_password BY '{p}'
CREATE ROLE app LOGIN PASSWORD '{p}';
ALTER USER app WITH PASSWORD '{p}';
SET PASSWORD FOR 'bob'@'%' = PASSWORD('{p}');
redis-cli -a {p} ping
redis-cli -h cache -a '{p}'
AUTH {p}
unzip -P {p} archive.zip
zip -P {p} archive.zip a.txt
7z x archive.7z -p{p}
7z a -p"{p}" out.7z x
echo 'root:{p}' | chpasswd
echo "alice:{p}" | sudo chpasswd
echo {p} | sudo -S apt update
echo '{p}' | sudo -S ls
printf '%s' {p} | docker login --password-stdin
echo {p} | passwd --stdin root
sudo -S <<< {p}
sudo -S <<< '{p}' ls
db.example.org:5432:shop:app:{p}
localhost:5432:*:postgres:{p}
*:*:*:app:{p}
machine example.org login me password {p}
machine example.org\n  login me\n  password {p}
curl -u alice:{p} https://example.org
curl -u 'alice:{p}' https://example.org
curl --user alice:{p} https://example.org
curl --user="alice:{p}" https://example.org
curl -ualice:{p} https://example.org
http -a alice:{p} example.org
wget --user=alice --password={p} https://example.org
wget --http-password {p} https://example.org
mysql -uroot -p{p} shop
mysql -u root -p'{p}' shop
mysqldump --password={p} shop
mariadb -u root -p{p}
sshpass -p {p} ssh host
sshpass -p '{p}' scp a b
sshpass -p{p} ssh host
PGPASSWORD={p} psql -h db
psql "host=db user=app password={p}"
mongo -u admin -p {p} --authenticationDatabase admin
mongosh --username a --password '{p}'
docker login -u me -p {p}
docker login registry.example.org -u me --password {p}
helm install x --set auth.password={p}
kubectl create secret generic db --from-literal=password={p}
kubectl create secret generic db --from-literal=value={p}
gh secret set DEPLOY --body "{p}"
vault kv put secret/db value={p}
vault login {p}
aws configure set aws_secret_access_key <s40>
az login -u me -p {p}
az login --service-principal -u app -p {p} --tenant x
openssl enc -aes-256-cbc -k {p} -in a
openssl rsa -passin pass:{p} -in key.pem
gpg --batch --passphrase {p} -d a.gpg
ssh-keygen -t ed25519 -N '{p}' -f key
cryptsetup open --key-file <(echo -n {p}) /dev/sda
net use Z: \\host\share {p} /user:alice
net user alice {p} /add
ldapsearch -x -D cn=admin -w {p}
smbclient //host/share -U alice%{p}
rabbitmqctl add_user alice {p}
htpasswd -b .htpasswd alice {p}
useradd -p {p} alice
nmcli dev wifi connect Home password {p}
expect "assword:" { send "{p}\r" }
snowsql -u me -p {p}
sqlcmd -S host -U sa -P {p}
sqlplus scott/{p}@db
impdp system/{p}@db
twine upload -u __token__ -p {p} dist/*
keytool -genkey -storepass {p} -keypass changeit
"""
SENTENCES = r"""
the password is {p}, as ever
My password is {p}.
The password for the staging server is {p}
the admin password was {p} last year
Use {p} as the password.
log in as alice with {p}
Log in with user alice and password {p}
sign in with alice / {p}
credentials: alice / {p}
the login is alice:{p}
use the credentials alice:{p} please
user alice, pass {p}
user: alice pass: {p}
username alice password {p}
Here is the API key: {p}
here's my token {p}
I set the secret to {p}
change the password from {p} to something else
we changed the passphrase to {p} yesterday
the wifi password is "{p}"
its password (which is {p}) must not change
PIN is {n}
my PIN: {n}
the PIN for the alarm is {n}
The door code is {n}.
card pin {n}
unlock it with PIN {n}, then start
The password of the zip:\n{p}
password below\n\n{p}\n
das Passwort ist {p}
Das Passwort lautet {p}
Kennwort für den Server: {p}
mein Kennwort {p} gilt noch
le mot de passe est {p}
mot de passe : {p}
la contraseña es {p}
mi clave es {p}
la password è {p}
a senha é {p}
het wachtwoord is {p}
hasło to {p}
пароль {p}
мой пароль: {p}
密码是{p}
パスワードは{p}です
비밀번호는 {p}
lösenordet är {p}
adgangskoden er {p}
salasana on {p}
heslo je {p}
parola este {p}
şifre {p}
"""
PHRASES = r"""
passphrase: {w}
my passphrase is {w}
The pass phrase for the key is {w}.
passphrase = "{w}"
the password is "{w}"
the password is '{w}' for now
password: "{w}"
Password: {w}
PASSPHRASE={w}
SSH_PASSPHRASE="{w}"
seed phrase: {w}
recovery phrase: {w}
mnemonic: {w}
gpg --passphrase "{w}" -d a
ssh-keygen -N "{w}" -f key
login('alice', '{w}')
die Passphrase lautet {w}
wallet seed words: {w}
use the passphrase {w}
"""
ADDRESSES = r"""
Authorization: Token {p}
Authorization: Token <h40>
Authorization: Bearer <a40>
Authorization: Bearer {p}
authorization: bearer <b30>
Authorization: ApiKey {p}
Authorization: Basic {p:basic}
Authorization: Key {p}
Authorization: Splunk {p}
Authorization: <a40>
-H "Authorization: token <h40>"
-H 'X-Api-Key: {p}'
X-Auth-Token: {p}
X-API-Key: <h32>
Private-Token: {p}
PRIVATE-TOKEN: <a20>
X-Vault-Token: {p}
Ocp-Apim-Subscription-Key: <h32>
api-key: <h32>
Cookie: session=<h32>
Cookie: sid={p}; theme=dark
Set-Cookie: auth={p}; HttpOnly
headers = {"Authorization": "Bearer {p}"}
headers={'X-Api-Key': '{p}'}
headers.set("Authorization", "Token {p}")
https://example.org/api?key={p}
https://example.org/api?api_key={p}&x=1
https://example.org/api?x=1&access_token={p}
https://example.org/api?token={p}
https://example.org/api?password={p}
https://example.org/?auth={p}
https://example.org/b?sv=2020&sig=<a40>%3D
https://example.org/x?X-Amz-Signature=<h64>
https://example.org/x?code={p}&client_secret={p}
https://alice:{p}@example.org/x
https://{p}@example.org/x.git
https://<h40>@github.com/a/b.git
https://oauth2:{p}@gitlab.example.org/a/b.git
postgres://app:{p}@db/shop
postgresql+asyncpg://app:{p}@db:5432/shop
mysql://root:{p}@localhost/x
mongodb+srv://app:{p}@cluster0.example.net/x
redis://:{p}@cache:6379/0
rediss://default:{p}@cache:6379
amqp://app:{p}@mq/vhost
smtp://me:{p}@mail:587
ftp://me:{p}@files/x
sftp://me:{p}@files/x
ssh://me:{p}@host/x
ldap://cn=a:{p}@dir
Server=db;Database=x;User Id=sa;Password={p};
Server=db;Uid=sa;Pwd={p};Encrypt=yes
Data Source=db;User ID=sa;Password={p}
jdbc:mysql://db/x?user=a&password={p}
jdbc:oracle:thin:scott/{p}@db:1521:x
DefaultEndpointsProtocol=https;AccountName=x;AccountKey=<s86>==;EndpointSuffix=core.windows.net
Endpoint=sb://x.example.net/;SharedAccessKeyName=Root;SharedAccessKey=<s43>=
host=db port=5432 user=app password={p}
https://hooks.slack.com/services/T<u8>/B<u8>/<a24>
https://discord.com/api/webhooks/<d18>/<b68>
https://discordapp.com/api/webhooks/<d18>/<b68>
https://x.webhook.office.com/webhookb2/<h32>/IncomingWebhook/<h32>/<h32>
https://<h32>@o<d6>.ingest.sentry.io/<d7>
https://api.telegram.org/bot<d10>:AA<b33>/getMe
"""
VENDORS = r"""
AKIA<u16>
ASIA<u16>
ghp_<a36>
gho_<a36>
ghs_<a36>
ghu_<a36>
ghr_<a36>
github_pat_<a22>_<a59>
glpat-<b20>
gldt-<b20>
glrt-<b20>
glptt-<h40>
glcbt-<h2>_<b20>
sk-<a48>
sk-proj-<a48>
sk-svcacct-<a48>
sk-ant-api03-<b93>AA
sk-ant-oat01-<b93>AA
sk-or-v1-<h64>
hf_<a34>
npm_<a36>
pypi-AgEIcHlwaS5vcmc<b70>
SG.<b22>.<b43>
shpat_<h32>
shpss_<h32>
shpca_<h32>
shppa_<h32>
dckr_pat_<b27>
dop_v1_<h64>
doo_v1_<h64>
dor_v1_<h64>
AIza<b35>
GOCSPX-<b28>
ya29.<b60>
1//0<b60>
EAACEdEose0cBA<a80>
EAA<a120>
sq0atp-<b22>
sq0csp-<b43>
EAAA<b60>
sk_live_<a24>
sk_test_<a24>
rk_live_<a24>
whsec_<a32>
key-<h32>
PMAK-<h24>-<h34>
figd_<b40>
lin_api_<a40>
lin_oauth_<h64>
tskey-auth-<a12>-<a32>
tskey-api-<a12>-<a32>
ATATT3xFfGF0<b180>
ATCTT3xFfGN0<b180>
sbp_<h40>
sb_secret_<b31>
r8_<a37>
gsk_<a52>
xai-<a80>
pplx-<a48>
xoxb-<d12>-<d12>-<a24>
xoxp-<d12>-<d12>-<d12>-<h32>
xoxc-<d12>-<d12>-<d12>-<h64>
xoxd-<a80>
xoxe.xoxp-1-<b160>
xapp-1-A<u10>-<d13>-<h64>
ntn_<d11><a35>
secret_<a43>
glsa_<a32>_<h8>
glc_<a60>
eyJrIjoi<a60>
hvs.<b90>
hvb.<b140>
s.<a24>
NRAK-<u27>
NRJS-<h19>
NRII-<b32>
lsv2_pt_<h32>_<h10>
lsv2_sk_<h32>_<h10>
tvly-<a32>
tvly-dev-<a32>
sntryu_<h64>
sntrys_<b100>
dp.pt.<a43>
dp.st.dev.<a43>
dp.ct.<a43>
M<b23>.G<b5>.<b38>
pat<a14>.<h64>
AGE-SECRET-KEY-1<u58>
dapi<h32>
fo1_<b43>
FlyV1 fm2_<s100>
fm1_<b80>
pul-<h40>
rubygems_<h48>
CLOJARS_<l60>
AKCp<a69>
cmVmd<a59>
PKAK<u16>
pk.eyJ1<a60>.<b22>
sk.eyJ1<a60>.<b22>
SK<h32>
AC<h32>:<h32>
phc_<a43>
phx_<a43>
rnd_<a28>
vercel_<a24>
nvapi-<b64>
fw_<a24>
csk-<l48>
jina_<a60>
pcsk_<b60>
esecret_<a40>
co_live_<a40>
LTAI<a20>
AKID<a32>
dt0c01.<u24>.<u64>
shippo_live_<h40>
duffel_live_<b43>
EZAK<a54>
flb_live_<a40>
FLWSECK_TEST-<h32>-X
xkeysib-<h64>-<a16>
<h32>-us12
mailgun pubkey-<h32>
sl.<b136>
lip_<a40>
hrku-<b36>
ops_eyJ<a250>
A3-<u6>-<u11>-<u5>-<u5>-<u5>
snyk_uat_<h8>.<a80>
sqa_<h40>
squ_<h40>
cf_<b37>
v1.0-<h24>-<h146>
re_<a8>_<a24>
apify_api_<a36>
buildkite bkua_<h40>
cio-<a40>
CCIPAT_<a22>_<h40>
ico-<a32>
4/0A<b70>
gAAAAA<b94>
pk_live_<a24>
rzp_live_<a14>
pat-na1-<h8>-<h4>-<h4>-<h4>-<h12>
EAAG<a100>
IGQVJ<a100>
AAAAAAAAAAAAAAAAAAAAA<a60>
amzn.mws.<h8>-<h4>-<h4>-<h4>-<h12>
access_token$production$<l16>$<h32>
nfp_<a36>
wandb_v1_<b80>
oy2<l43>
"""
ENCODED = r"""
{v:base64}
echo {v:base64} | base64 -d
key: {v:base64}
{v:base64url}
{v:hex}
{v:xescape}
{v:uescape}
{v:uescape6}
{v:octal}
{v:percent}
{v:entities}
{v:fullwidth}
{v:split}
{v:split_plus}
{v:split_lines}
{v:split_dot}
{v:split_shell}
{v:split_terminal}
{v:backslash_lines}
{v:zero_width}
{v:base64twice}
{v:reversed_json}
{v:markdown}
{v:base32}
{v:soft_hyphen}
token = {v:split_format}
bytes([{v:codes}])
"""
KEYS = r"""
{k}
{k:quoted}
{k:numbered}
{k:diff}
{k:piped}
{k:json}
{k:program}
{k:indented}
{k:cut}
{k:tail}
{k:openssh}
{k:pgp}
{k:base64}
{k:catn}
"""
FAMILIES = {
    "named": NAMED,
    "positional": POSITIONAL,
    "sentences": SENTENCES,
    "phrases": PHRASES,
    "addresses": ADDRESSES,
    "vendors": VENDORS,
    "encoded": ENCODED,
    "keys": KEYS,
}


@dataclass(frozen=True, slots=True)
class Form:
    family: str
    template: str

    @property
    def is_held_out(self) -> bool:
        """Whether the detector was written without a look at what it does to this form."""
        return hashlib.sha256(self.template.encode()).digest()[0] % 3 == 0


FORMS = [Form(family, line) for family, text in FAMILIES.items() for line in text.strip("\n").split("\n")]


def characters(random: Random, kind: str, count: int) -> str:
    """Return random characters; of long ones, some are digits and some are letters."""
    while True:
        text = "".join(random.choices(ALPHABETS[kind], k=count))
        if kind == "d" or count < 8 or (re.search(r"\d", text) and re.search(r"[A-Za-z]", text)):
            return text


def password(random: Random) -> str:
    first, second = random.sample(WORDS, 2)
    number = random.randint(10, 99)
    return random.choice(
        (
            f"{first.title()}-{number}-{second}",
            f"{first.title()}{number}{second.title()}!",
            f"{first}{random.randint(100, 9999)}{second}",
            characters(random, "a", 14),
            f"{first[:3]}0{first[3:].title()}.{number}x",
            characters(random, "l", 12),
        )
    )


def phrase(random: Random) -> str:
    return " ".join(random.sample(WORDS, random.choice((4, 5, 6, 12))))


TOKENS = ("ghp_<a36>", "sk-ant-api03-<b93>AA", "AKIA<u16>", "glpat-<a20>", "xoxb-<d12>-<d12>-<a24>", "hvs.<a90>")


def filled(random: Random, template: str) -> str:
    return re.sub(r"<([abslhdu])(\d+)>", lambda match: characters(random, match[1], int(match[2])), template)


def encoded(value: str, way: str) -> str:
    half, third = len(value) // 2, len(value) // 3
    first, second, last = value[:third], value[third : 2 * third], value[2 * third :]
    ways = {
        "basic": lambda: base64.b64encode(f"alice:{value}".encode()).decode(),
        "base64": lambda: base64.b64encode(value.encode()).decode(),
        "base64url": lambda: base64.urlsafe_b64encode(f"x{value}".encode()).decode().rstrip("="),
        "base64twice": lambda: base64.b64encode(base64.b64encode(value.encode())).decode(),
        "base32": lambda: base64.b32encode(value.encode()).decode(),
        "hex": lambda: value.encode().hex(),
        "xescape": lambda: "".join(f"\\x{ord(sign):02x}" for sign in value),
        "uescape": lambda: "".join(f"\\u{ord(sign):04x}" for sign in value),
        "uescape6": lambda: "".join(f"\\u{{{ord(sign):x}}}" for sign in value),
        "octal": lambda: "".join(f"\\{ord(sign):03o}" for sign in value),
        "percent": lambda: "".join(f"%{ord(sign):02X}" for sign in value),
        "entities": lambda: "".join(f"&#{ord(sign)};" for sign in value),
        "fullwidth": lambda: "".join(chr(ord(sign) + 0xFEE0) for sign in value),
        "split": lambda: f'"{value[:half]}" "{value[half:]}"',
        "split_plus": lambda: f'"{first}" + "{second}" + "{last}"',
        "split_lines": lambda: f'("{first}"\n    "{second}"\n    "{last}")',
        "split_dot": lambda: f"'{value[:half]}' . '{value[half:]}'",
        "split_shell": lambda: f"{first}''{second}\"\"{last}",
        "split_terminal": lambda: f"{value[:half]}\n  {value[half:]}",
        "split_format": lambda: f'"{value[:half]}" .. "{value[half:]}"',
        "backslash_lines": lambda: f"{value[:half]}\\\n{value[half:]}",
        "zero_width": lambda: f"{value[:half]}\u200b{value[half:]}",
        "soft_hyphen": lambda: f"{value[:half]}\u00ad{value[half:]}",
        "reversed_json": lambda: '{\\"t\\":\\"' + value.replace("-", "\\u002d").replace("_", "\\u005f") + '\\"}',
        "markdown": lambda: f"{value.replace('_', chr(92) + '_').replace('-', chr(92) + '-')}",
        "codes": lambda: ", ".join(str(ord(sign)) for sign in value),
    }
    return quote(value) if way == "quote" else ways[way]()


def private_key(random: Random, way: str) -> tuple[str, list[str]]:
    lines = [characters(random, "s", 64) for _ in range(6)]
    kind = {"openssh": "OPENSSH ", "indented": "EC "}.get(way, "RSA ")
    begin, end = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
    if way == "pgp":
        begin, end = "-----BEGIN PGP PRIVATE KEY BLOCK-----", "-----END PGP PRIVATE KEY BLOCK-----"
    whole = [begin, *lines, end]
    ways = {
        "quoted": "\n".join(f"> {line}" for line in whole),
        "numbered": "\n".join(f"{number}: {line}" for number, line in enumerate(whole, start=12)),
        "catn": "\n".join(f"{number:6}\t{line}" for number, line in enumerate(whole, start=7)),
        "diff": "\n".join(f"+{line}" for line in whole),
        "piped": "\n".join(f"| {line} |" for line in whole),
        "json": '"' + "\\n".join(whole) + '"',
        "program": " +\n".join(f'"{line}\\n"' for line in whole),
        "indented": "\n".join(f"    {line}" for line in whole),
        "cut": "\n".join(whole[:4]),
        "tail": "\n".join(whole[3:]),
        "base64": base64.b64encode("\n".join(whole).encode()).decode(),
    }
    text = ways.get(way, "\n".join(whole))
    if way == "cut":
        return text, lines[:3]
    if way == "tail":
        return text, lines[2:]
    return text, [text] if way == "base64" else lines


def written(form: Form, random: Random) -> tuple[str, list[str]]:
    """Return a text of the form, and pieces of which none may be left in what is shown of it."""
    template = form.template.replace("\\n", "\n").replace("\\t", "\t") if form.family != "encoded" else form.template
    if form.family == "keys":
        return private_key(random, template.strip("{}").partition(":")[2])
    if form.family == "vendors":
        token = filled(random, template)
        return random.choice(("use {} there", "{}", "x = f({})", '"{}"')).format(token), pieces(token)
    values: list[str] = []

    def value(match: re.Match[str]) -> str:
        makers = {"p": password, "w": phrase, "v": lambda chance: filled(chance, chance.choice(TOKENS))}
        text = f"{random.randint(0, 9999):04}" if match[1] == "n" else makers[match[1]](random)
        shown = encoded(text, match[2]) if match[2] else text
        values.extend(parts(shown) if match[2] else [text] if match[1] == "n" else pieces(text))
        return shown

    def random_value(match: re.Match[str]) -> str:
        text = characters(random, match[1], int(match[2]))
        values.extend(pieces(text) if int(match[2]) >= 20 else [])
        return text

    text = re.sub(r"<([abslhdu])(\d+)>", random_value, template)
    return re.sub(r"\{([pwnv])(?::(\w+))?\}", value, text), values


def pieces(value: str) -> list[str]:
    """Return what of a value gives it away: a phrase two words at a time, else its beginning and its end."""
    words = value.split(" ")
    if len(words) > 3:
        return [" ".join(words[at : at + 2]) for at in range(len(words) - 1)]
    long = len(value) * 2 // 3
    return [value] if len(value) < 24 else [value[:long][-16:], value[-long:][-16:]]


def parts(text: str) -> list[str]:
    """Return the parts of an encoded or split value that may not be left: words of 12 characters or more."""
    words = re.findall(r"[^\s\"'+.(),;]{12,}", text) or [text]
    return [word[len(word) // 3 :][:16] for word in words]
