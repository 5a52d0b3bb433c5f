#!/bin/bash
printf 'quantity: 31\ncounted twice\n' >/app/slip.txt
