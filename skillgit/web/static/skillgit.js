// What is live on the pages of skillgit serve. Without it everything else works.
"use strict";
