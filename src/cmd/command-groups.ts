/** Puts the commands into the groups in which the help shows them. */
import { GROUP_TITLES } from '../cli/group-titles.ts';
import type { CommandSpec } from '../cli/program.ts';

type Group = keyof typeof GROUP_TITLES;

/** The groups of the commands that serve all dialects. A dialect gives its commands their groups itself. */
const GROUPS: Readonly<Record<Group, readonly string[]>> = {
  see: ['status', 'why', 'logs', 'dashboard', 'history', 'report', 'updates'],
  before: ['preview', 'ready', 'validate'],
  control: [
    'upgrade',
    'pause',
    'resume',
    'abort',
    'rollback',
    'retry',
    'start',
    'hold',
    'unhold',
    'approve',
    'accept',
  ],
  run: ['agent', 'serve', 'bundle'],
  setUp: ['replay', 'notify', 'install', 'uninstall', 'credentials', 'completion', 'version'],
};
const TITLES: readonly string[] = Object.values(GROUP_TITLES);

/** Returns the commands in the order of the groups, each with the title of its group. Throws if one has no group. */
export function inGroups(commands: readonly CommandSpec[]): CommandSpec[] {
  return commands
    .map((command) => ({ ...command, group: command.group ?? titleFor(command.name) }))
    .toSorted((one, other) => TITLES.indexOf(one.group) - TITLES.indexOf(other.group));
}

function titleFor(name: string): string {
  for (const [group, names] of Object.entries(GROUPS))
    if (names.includes(name)) return GROUP_TITLES[group as Group];
  throw new Error(`the command ${name} has no group in the help`);
}
