#!/bin/bash
printf 'quantity: 9\ncounted twice\n' >/app/slip.txt
