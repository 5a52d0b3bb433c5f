#!/bin/bash
printf 'quantity: 240\ncounted twice\n' >/app/slip.txt
