# One command of the target. $TESTBED is the checkout, $BOX has what came with the command and takes in out/ what it
# leaves. The patch so far is all that is left of earlier commands; the new one is made with an index and objects of its
# own, so that nothing that the command does to the repository's can spoil it.
cd "$TESTBED" || exit 1
commit=$(git rev-parse HEAD) || exit 1
git init --quiet --bare "$BOX/git" || exit 1
echo "$TESTBED/.git/objects" >"$BOX/git/objects/info/alternates"
own() { git --git-dir="$BOX/git" --work-tree="$TESTBED" -c core.bare=false -c core.safecrlf=false -c advice.addEmbeddedRepo=false "$@"; }
own read-tree "$commit" && own add --all && base=$(own write-tree) || exit 1
if [ -s "$BOX/patch.diff" ]; then
    git apply --whitespace=nowarn "$BOX/patch.diff" || exit 1
fi
if [ -r /opt/miniconda3/bin/activate ]; then
    . /opt/miniconda3/bin/activate && conda activate testbed
fi
timeout --kill-after=5 "$(cat "$BOX/limit")" env -u BOX bash "$BOX/command.sh" >"$BOX/raw" 2>&1 </dev/null
echo "$?" >"$BOX/out/exit"
sed "s#$TESTBED#/testbed#g" "$BOX/raw" >"$BOX/out/output"
cd "$TESTBED" && own add --all 2>"$BOX/out/trouble" &&
    own diff --cached --binary --full-index --no-color --no-ext-diff --no-textconv --no-renames "$base" >"$BOX/new" &&
    mv "$BOX/new" "$BOX/out/patch.diff"
exit 0
