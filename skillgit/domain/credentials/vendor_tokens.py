r"""What the tokens of vendors begin with and how long they are.

A row says who issues the token, what it begins with, and a pattern of the rest. Where a beginning is short, the rest is
strict. The formats are those that the vendors issue, written down here without being looked up again one by one; the
beginnings in ``_TELLING_MARKS``, and several lengths, follow the names and prefixes in the rules of Betterleaks 2.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

_W, _WORD, _HEX = "A-Za-z0-9", r"A-Za-z0-9_\-", "[0-9a-fA-F]"
_MIX = rf"(?=[{_WORD}]{{0,60}}[0-9])"  # a digit soon, which words do not have
_END = rf"(?![{_W}])"
_BEGIN = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[bfnrt]))"
"""A token begins where no word goes on; the n of an escaped line break in a JSON string is not part of a word."""
_UUID = rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("1Password", "A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"),
    ("1Password", "ops_eyJ", rf"[{_W}+/_-]{{100,}}={{0,2}}"),
    ("age", "AGE-SECRET-KEY-", r"(?:PQ-)?1[A-Z0-9]{50,}"),
    ("Airtable", "pat", rf"[{_W}]{{14}}\.{_HEX}{{64}}"),
    ("Alibaba Cloud", "LTAI", rf"{_MIX}[{_W}]{{12,26}}{_END}"),
    ("Amazon MWS", "amzn.mws.", _UUID),
    ("Anthropic", "sk-ant-", rf"[{_WORD}]{{20,}}"),
    ("Apify", "apify_api_", rf"[{_W}]{{30,}}"),
    ("Artifactory", "AKCp", rf"{_MIX}[{_W}]{{60,}}"),
    ("Artifactory", "cmVmd", rf"{_MIX}[{_W}]{{55,}}"),
    ("Asana", "0/", rf"{_HEX}{{32}}{_END}"),
    ("Atlassian", "ATATT3 ATCTT3", rf"[{_WORD}=]{{50,}}"),
    ("Atlassian", "ATBB", rf"{_MIX}[{_W}]{{28,}}"),
    ("AWS", "AKIA ASIA", r"[A-Z0-9]{16}(?![A-Z0-9])"),
    ("AWS", "ABIA ACCA", r"[A-Z2-7]{16}(?![A-Z0-9])"),
    ("AWS Bedrock", "ABSK", rf"[{_W}+/]{{80,}}={{0,2}}"),
    ("Braintree", "access_token$production$", rf"[{_W}]{{16}}\${_HEX}{{32}}"),
    ("Brevo", "xkeysib- xsmtpsib-", rf"{_HEX}{{64}}-[{_W}]{{16}}"),
    ("Buildkite", "bkua_", rf"{_MIX}[a-z0-9]{{40,}}"),
    ("Cerebras", "csk-", rf"{_MIX}[a-z0-9]{{40,}}"),
    ("Cloudflare", "v1.0-", rf"{_HEX}{{24}}-{_HEX}{{146}}"),
    ("CircleCI", "CCIPAT_", rf"[{_W}]{{16,}}_{_HEX}{{40}}"),
    ("Clojars", "CLOJARS_", rf"[{_W}]{{60}}"),
    ("Databricks", "dapi", rf"{_HEX}{{32}}(?:-[0-9])?{_END}"),
    ("Defined Networking", "dnkey-", rf"[{_WORD}=]{{26}}-[{_WORD}=]{{52}}"),
    ("DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", rf"{_HEX}{{64}}"),
    ("Docker", "dckr_pat_ dckr_oat_", rf"[{_WORD}]{{20,}}"),
    ("Doppler", "dp.", rf"(?:pt|st|ct|sa|said|scim|audit)\.(?:[a-z0-9_-]{{1,35}}\.)?[{_W}]{{40,}}"),
    ("Dropbox", "sl.", rf"{_MIX}(?:u\.)?[{_WORD}=]{{120,}}"),
    ("Duffel", "duffel_", rf"(?:test|live)_[{_WORD}=]{{40,}}"),
    ("Dynatrace", "dt0", rf"[a-z][0-9]{{2}}\.[{_W}]{{24}}\.[{_W}]{{64}}"),
    ("EasyPost", "EZAK EZTK", rf"[{_W}]{{54}}"),
    ("Facebook", "EAA", rf"(?=[{_W}]{{0,60}}[0-9])[{_W}]{{60,}}"),
    ("Facebook", "IGQV", rf"{_MIX}[{_WORD}]{{80,}}"),
    ("Fernet", "gAAAAA", rf"{_MIX}[{_WORD}]{{60,}}={{0,2}}"),
    ("Figma", "figd_", rf"[{_WORD}]{{30,}}"),
    ("Flutterwave", "FLWSECK FLWPUBK", rf"(?:_TEST)?-[{_W}]{{12,}}(?:-X)?"),
    ("Fly.io", "fo1_", rf"[{_WORD}]{{43}}"),
    ("Fly.io", "fm1", rf"[ar]?_[{_W}+/_-]{{60,}}={{0,3}}"),
    ("Fly.io", "fm2_", rf"[{_W}+/_-]{{60,}}={{0,3}}"),
    ("Frame.io", "fio-u-", rf"[{_WORD}=]{{64}}"),
    ("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", rf"[{_W}]{{36,}}"),
    ("GitHub", "github_pat_", rf"[{_W}_]{{40,}}"),
    ("GitHub", "v1.", rf"{_HEX}{{40}}{_END}"),
    (
        "GitLab",
        "glpat- gldt- glrt- glrtr- glptt- glft- glsoat- glcbt- glagent- gloas-",
        rf"{_MIX}[{_WORD}]{{20,}}(?:\.[{_W}]{{2}}\.[{_W}]{{6,}})?",
    ),
    ("GitLab", "glimt- glffct- GR1348941", rf"[{_WORD}]{{20,}}"),
    ("GoCardless", "live_", rf"(?=[a-z0-9]{{0,30}}[0-9])(?=[{_WORD}]{{0,30}}[A-Z])[{_WORD}=]{{40}}{_END}"),
    ("Google", "AIza", rf"[{_WORD}]{{35}}"),
    ("Google", "GOCSPX- ya29.", rf"[{_WORD}]{{20,}}"),
    ("Google", "1//0", rf"{_MIX}[{_WORD}]{{40,}}"),
    ("Google", "4/0", rf"{_MIX}[{_WORD}]{{60,}}"),
    ("Grafana", "glsa_", rf"[{_W}]{{32}}_[{_W}]{{8}}"),
    ("Grafana", "glc_", rf"[{_W}+/]{{32,}}={{0,3}}"),
    ("Grafana", "eyJrIjoi", rf"[{_W}]{{50,}}={{0,2}}"),
    ("Groq", "gsk_", rf"[{_W}]{{40,}}"),
    ("Harness", "pat.", rf"[{_WORD}]{{22}}\.[{_W}]{{24}}\.[{_W}]{{20}}"),
    ("Heroku", "HRKU- hrku-", rf"[{_WORD}]{{36,}}"),
    ("HubSpot", "pat-", rf"[a-z]{{2}}[0-9]-{_UUID}"),
    ("Hugging Face", "hf_ api_org_", rf"[{_W}]{{30,}}"),
    ("Infracost", "ico-", rf"{_MIX}[{_W}]{{32}}{_END}"),
    ("Jina", "jina_", rf"{_MIX}[{_W}_-]{{40,}}"),
    ("JSON Web Token", "eyJ", rf"[{_WORD}]{{10,}}\.(?:eyJ)?[{_WORD}]{{10,}}\.[{_WORD}]{{10,}}"),
    ("LangSmith", "lsv2_", rf"(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    ("Linear", "lin_api_ lin_oauth_", rf"[{_W}]{{32,}}"),
    ("LinkedIn", "WPL_AP", r"[0-9]\.[A-Za-z0-9]{10,}\.[A-Za-z0-9+/=]{6,}"),
    ("Lob", "live_", rf"{_HEX}{{35}}{_END}"),
    ("Mailgun", "key-", rf"(?=[a-z]{{0,31}}[0-9])[a-z0-9]{{32}}{_END}"),
    ("Mailgun", "pubkey-", rf"{_HEX}{{32}}{_END}"),
    ("Mapbox", "pk.eyJ sk.eyJ", rf"[{_WORD}]{{40,}}\.[{_WORD}]{{20,}}"),
    ("MaxMind", "mmk", rf"_[{_W}_]{{6,}}"),
    ("Netlify", "nfp_", rf"[{_W}]{{36}}"),
    ("New Relic", "NRAK-", r"[A-Z0-9]{27}"),
    ("New Relic", "NRJS-", rf"{_HEX}{{19}}"),
    ("New Relic", "NRII-", rf"[{_WORD}]{{32}}"),
    ("Notion", "ntn_", r"[0-9]{11}[A-Za-z0-9]{35}"),
    ("Notion", "secret_", rf"{_MIX}[{_W}]{{40,}}"),
    ("npm", "npm_", rf"[{_W}]{{36}}"),
    ("NuGet", "oy2", rf"{_MIX}[a-z0-9]{{43}}{_END}"),
    ("NVIDIA", "nvapi-", rf"[{_WORD}]{{40,}}"),
    ("OpenAI", "sk-", r"(?=[A-Za-z0-9_-]{0,80}[0-9])(?=[A-Za-z0-9_-]{0,80}[A-Za-z0-9]{16})[A-Za-z0-9_-]{20,}"),
    ("OpenShift", "sha256~", rf"[{_WORD}]{{43}}"),
    ("Perplexity", "pplx-", rf"[{_W}]{{40,}}"),
    ("Pinecone", "pcsk_", rf"[{_W}_]{{40,}}"),
    ("PlanetScale", "pscale_", rf"(?:tkn|oauth|pw)_[{_WORD}=.]{{32,}}"),
    ("PostHog", "phc_ phx_", rf"[{_W}]{{40,}}"),
    ("Postman", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    ("Prefect", "pnu_", rf"{_MIX}[{_W}]{{36}}{_END}"),
    ("Pulumi", "pul-", rf"{_HEX}{{40}}"),
    ("PyPI", "pypi-", rf"[{_WORD}]{{50,}}"),
    ("Razorpay", "rzp_", rf"(?:live|test)_[{_W}]{{14}}"),
    ("ReadMe", "rdme_", r"[a-z0-9]{70}"),
    ("Render", "rnd_", rf"{_MIX}[{_W}]{{24,}}"),
    ("Replicate", "r8_", rf"[{_W}]{{32,}}"),
    ("Resend", "re_", rf"{_MIX}[{_W}]{{8}}_[{_W}]{{20,}}"),
    ("RubyGems", "rubygems_", rf"{_HEX}{{48}}"),
    ("Scalingo", "tk-us-", rf"[{_WORD}]{{48}}"),
    ("SendGrid", "SG.", rf"[{_WORD}=.]{{60,}}"),
    ("Sentry", "sntryu_", rf"{_HEX}{{64}}"),
    ("Sentry", "sntrys_", rf"[{_W}+/_=-]{{60,}}"),
    ("Settlemint", "sm_", rf"(?:aat|pat|sat)_[{_W}]{{16}}{_END}"),
    ("Shippo", "shippo_", rf"(?:live|test)_{_HEX}{{40}}"),
    ("Shopify", "shpat_ shpca_ shppa_ shpss_", rf"{_HEX}{{32}}"),
    ("Sidekiq", "cafebabe:", r"deadbeef"),
    ("Slack", "xapp-", rf"[{_W}-]{{20,}}"),
    ("Slack", "xox", rf"[abcdeoprs](?:\.xox[bp])?-{_MIX}[{_W}%+/-]{{16,}}"),
    ("Snyk", "snyk_", rf"(?:uat|sat)_{_HEX}{{8}}\.[{_W}_.-]{{40,}}"),
    ("SonarQube", "squ_ sqa_ sqp_", rf"{_HEX}{{40}}"),
    ("Sourcegraph", "sgp_", rf"(?:[{_W}]{{5,16}}_)?{_MIX}[{_W}]{{40,}}"),
    ("Square", "sq0", rf"[a-z]{{3}}-[{_WORD}]{{22,}}"),
    ("Square", "EAAA", rf"{_MIX}[{_WORD}]{{60}}{_END}"),
    ("Stripe", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", rf"[{_W}]{{20,}}"),
    ("Stripe", "whsec_", rf"[{_W}+/]{{24,}}={{0,2}}"),
    ("Supabase", "sbp_", rf"(?:v0_)?{_MIX}[a-z0-9_-]{{40}}"),
    ("Supabase", "sb_secret_", rf"[{_WORD}]{{24,}}"),
    ("Tailscale", "tskey-", rf"[a-z]{{3,9}}-{_MIX}[{_W}-]{{20,}}"),
    ("Tavily", "tvly-", rf"(?:dev-|prod-)?{_MIX}[{_W}-]{{30,}}"),
    ("Tencent Cloud", "AKID", rf"{_MIX}[{_W}]{{32}}{_END}"),
    ("Terraform Cloud", "atlasv1.", rf"[{_WORD}]{{60,}}"),
    ("Twilio", "SK", rf"{_HEX}{{32}}{_END}"),
    ("Typeform", "tfp_", rf"[{_WORD}.=]{{59}}"),
    ("Vault", "hvs. hvb. hvr.", rf"[{_WORD}]{{20,}}"),
    ("Vault", "s.", rf"(?=[{_W}]{{0,23}}[0-9])(?=[{_W}]{{0,23}}[A-Z])(?=[{_W}]{{0,23}}[a-z])[{_W}]{{24}}{_END}"),
    ("Weights & Biases", "wandb_v1_", rf"[{_W}_]{{40,}}"),
    ("xAI", "xai-", rf"[{_W}]{{40,}}"),
    ("Yandex Cloud", "AQVN", rf"{_MIX}[{_WORD}]{{35,38}}{_END}"),
    ("Yandex Cloud", "t1.", r"[A-Z0-9a-z_-]{10,}={0,2}\.[A-Z0-9a-z_-]{86}={0,2}"),
)
_TABLE = tuple((vendor, mark, rest) for vendor, marks, rest in _ROWS for mark in marks.split())

# Beginnings that alone say what they are; of what follows, a length is enough.
_TELLING_MARKS = (
    "Adobe p8e-; Aikido AIK_CI_ AIK_CLIENT_ AIK_SECRET_; Asaas $aact_prod_ $aact_hmlg_; AWS bedrock-api-key-; "
    "Bitbucket BBDC-; Canva cnvca; Cartesia sk_car_; CockroachDB CCDB1_; ConfigCat configcat-sdk-1/; "
    "DataStax AstraCS:; Deno ddp_; DevCycle dvc_client_ dvc_server_ dvc_mobile_; Devin apk_user_; "
    "Docker SWMTKN-1- SWMKEY-1-; Elastic essu_; Google AQ.Ab8RN6; GitLab _gitlab_session=; Ionic ion_; Devin cog_; "
    "Langfuse sk-lf- pk-lf-; Lichess lip_; LlamaIndex llx-; MailerSend mlsn.; Mercury mercury_production_; "
    "Mergify mergify_application_key_; MongoDB mdb_sa_sk_; Neon napi_; Nylas nyk_; OneSignal os_v2_app_ os_v2_org_; "
    "Onfido api_live. api_live_us. api_live_ca.; Paddle pdl_live_apikey_; Persona persona_production_; "
    "Pinterest pina_; Polar polar_at_ polar_oat_ polar_pat_; Ramp ramp_sec_; RunPod rpa_; Samsara samsara_api_; "
    "Together tgp_v1_; Unkey unkey_; UpCloud ucat_; Vercel vck_ vca_ vcr_ vci_ vcp_; WakaTime waka_; "
    "Xendit xnd_production_; Zuplo zpka_; Rootly rootly_; Intra42 s-s4t2ud- s-s4t2af-"
)
_LONG = r"(?=[A-Za-z_+/=.-]{0,60}[0-9])[A-Za-z0-9_+/=.-]{20,}"

# What begins with no fixed text is known by the whole of its form; a text without the mark has none.
_FORMS: tuple[tuple[str, str, str], ...] = (
    ("Azure storage", "AccountKey=", r"(?<=AccountKey=)[A-Za-z0-9+/]{40,90}={0,2}"),
    ("Azure service bus", "SharedAccessKey=", r"(?<=SharedAccessKey=)[A-Za-z0-9+/]{40,60}={0,2}"),
    ("Azure Entra", "Q~", rf"(?<![{_WORD}])[{_WORD}]{{3}}[0-9]Q~[{_WORD}.~]{{31,34}}"),
    ("Azure signature", "sig=", r"(?<=[?&]sig=)[A-Za-z0-9%+/=]{20,200}"),
    ("AWS signature", "X-Amz-Signature=", r"(?<=X-Amz-Signature=)[0-9a-f]{64}"),
    ("Discord", ".", rf"(?<![{_WORD}.])[MNO][{_WORD}]{{23,27}}\.[{_WORD}]{{5,7}}\.[{_WORD}]{{27,45}}(?![{_WORD}.])"),
    ("Mailchimp", "-us", r"(?<![A-Za-z0-9])[0-9a-f]{32}-us[0-9]{1,2}(?![A-Za-z0-9])"),
    ("Sentry", "@o", r"(?<=://)[0-9a-f]{32}(?=(?::[0-9a-f]{32})?@o[0-9]{1,20}\.)"),
    ("Slack webhook", "hooks.slack.com/", r"https://hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,200}"),
    ("Teams webhook", "webhook.office.com/", r"https://[\w-]{1,80}\.webhook\.office\.com/webhookb2/[\w@/-]{20,300}"),
    (
        "Discord webhook",
        "/api/webhooks/",
        r"https://(?:\w{1,20}\.)?discord(?:app)?\.com/api/webhooks/[0-9]{5,25}/[\w-]{20,100}",
    ),
    ("Telegram", ":AA", rf"(?<![0-9])[0-9]{{8,10}}:AA[{_WORD}]{{30,40}}"),
    ("Twilio", "AC", rf"(?<![{_WORD}])AC{_HEX}{{32}}:{_HEX}{{32}}"),
)


@dataclass(frozen=True, slots=True)
class VendorToken:
    vendor: str
    mark: str  # what every text with such a token contains
    form: str
    is_anchored: bool = True  # whether the token begins with its mark

    @property
    def pattern(self) -> re.Pattern[str]:
        return _compiled(self.form)


@cache
def _compiled(form: str) -> re.Pattern[str]:
    """Return the pattern of a form; most are never needed, and to compile all of them takes longer than a command."""
    return re.compile(form)


VENDOR_TOKENS = (
    *(VendorToken(vendor, mark, _BEGIN + re.escape(mark) + rest) for vendor, mark, rest in _TABLE),
    *(
        VendorToken(vendor, mark, _BEGIN + re.escape(mark) + _LONG)
        for vendor, *marks in map(str.split, _TELLING_MARKS.split(";"))
        for mark in marks
    ),
    *(VendorToken(vendor, mark, form, is_anchored=False) for vendor, mark, form in _FORMS),
)
_TELLING = re.compile(r"[A-Za-z0-9$_.-]{2,20}[_.-]\Z|AIza\Z|AKIA\Z|ASIA\Z|ATATT3\Z")
_COMMON = frozenset({"s.", "t1.", "v1.", "sl.", "re_", "co_", "live_", "key-", "secret_", "sm_", "pat.", "dp.", "mmk"})
CUT_TOKENS = tuple(
    VendorToken(
        vendor,
        mark,
        rf"{_BEGIN}{re.escape(mark)}(?=[A-Za-z_./+=-]{{0,40}}[0-9])[A-Za-z0-9_./+=-]{{6,}}",
    )
    for vendor, mark, _ in _TABLE
    if _TELLING.match(mark) and mark not in _COMMON
)
"""Beginnings that alone say what follows: a few characters are enough, for the end may have been cut off."""
BEGINNING = re.compile(_BEGIN + r"(?=(\S\S))")
"""Where a token may begin that begins with its mark, with its first two characters."""


def by_beginning(tokens: Iterable[VendorToken]) -> dict[str, list[VendorToken]]:
    """Return tokens by the first two characters of their marks, and those that begin otherwise under no character."""
    table: dict[str, list[VendorToken]] = {}
    for token in tokens:
        table.setdefault(token.mark[:2] if token.is_anchored else "", []).append(token)
    return table
