#!/bin/bash
printf 'quantity: 560\ncounted twice\n' >/app/slip.txt
