# The tests of an instance with a patch, as the official harness has them: four ways to apply it, from a clean tree each
# time, and one that was applied all the same counts. Without a patch the tests run as they are.
cd "$TESTBED" || exit 1
try() {
    git apply --verbose "$BOX/patch.diff" && return
    for way in "git apply --verbose --3way" "git apply --verbose --reject" "patch --batch --forward --fuzz=5 -p1 -i"; do
        git checkout -- . ; git clean -fd
        $way "$BOX/patch.diff" && return
    done
    git apply --check --reverse "$BOX/patch.diff"
}
if [ -e "$BOX/patch.diff" ] && ! try >"$BOX/out/attempts" 2>&1; then
    echo yes >"$BOX/out/refused"
    exit 0
fi
timeout --kill-after=30 "$(cat "$BOX/limit")" env -u BOX bash "$BOX/eval.sh" >"$BOX/raw" 2>&1 </dev/null
echo "$?" >"$BOX/out/exit"
sed "s#$TESTBED#/testbed#g" "$BOX/raw" >"$BOX/out/output"
exit 0
