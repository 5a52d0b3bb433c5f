"""The rules of Agent Skills, each with its name, and the checks that find where a skill folder breaks one."""
