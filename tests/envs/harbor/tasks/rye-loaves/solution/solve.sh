#!/bin/bash
printf 'quantity: 14\ncounted twice\n' >/app/slip.txt
