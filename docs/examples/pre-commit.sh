#!/bin/sh
# Refuses a commit that holds a skill which is no valid Agent Skill.
# Copy this file to .git/hooks/pre-commit and make it executable.
set -eu

# What is checked is what is going to be committed, not what the work tree holds.
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
trap 'exit 1' HUP INT TERM

# A skill is a folder of skills/, and any folder with a SKILL.md.
git diff --cached --name-only --no-renames -z | tr '\0' '\n' |
  while IFS= read -r path; do
    folder=$path
    while [ "$folder" != "${folder%/*}" ]; do
      folder=${folder%/*}
      case $folder in skills/*/*) ;; skills/*) printf '%s\n' "$folder" ;; esac
      git --literal-pathspecs ls-files --error-unmatch -- "$folder/SKILL.md" > /dev/null 2>&1 || continue
      printf '%s\n' "$folder"
    done
  done | sort -u > "$staged/changed"

status=0
while IFS= read -r folder; do
  git --literal-pathspecs ls-files -z -- "$folder" | git checkout-index -z --stdin --prefix="$staged/tree/"
  if [ -d "$staged/tree/$folder" ]; then
    skillgit lint "$staged/tree/$folder" || status=1
  fi
done < "$staged/changed"
exit "$status"
