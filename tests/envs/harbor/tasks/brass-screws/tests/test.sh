#!/bin/bash
# A slip says how many there are, and has what every slip of the house has.
score=0
if grep -qx "quantity: 240" /app/slip.txt 2>/dev/null; then
    score=$((score + 1))
else
    echo "the slip lacks the quantity of the order"
fi
if [ "$(tail -n 1 /app/slip.txt 2>/dev/null)" = "counted twice" ]; then
    score=$((score + 1))
else
    echo "the slip lacks the words counted twice at its end"
fi
case $score in 2) echo 1.0 ;; 1) echo 0.5 ;; *) echo 0.0 ;; esac >/logs/verifier/reward.txt
