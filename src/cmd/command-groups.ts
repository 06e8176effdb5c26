/** Puts the commands into the groups in which the help shows them. What people type first comes first. */
import type { CommandSpec } from '../cli/program.ts';

interface CommandGroup {
  readonly title: string;
  readonly names: readonly string[];
}

export const COMMAND_GROUPS: readonly CommandGroup[] = [
  {
    title: 'See what happens, and why:',
    names: ['status', 'why', 'logs', 'dashboard', 'history', 'report', 'updates'],
  },
  {
    title: 'Before an upgrade:',
    names: ['ready', 'preview', 'validate', 'migrate'],
  },
  {
    title: 'Control an upgrade:',
    names: [
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
      'kubeadm',
    ],
  },
  {
    title: 'Run Refit:',
    names: [
      'controller',
      'system-upgrade-controller',
      'capi-extension',
      'agent',
      'serve',
      'bundle',
    ],
  },
  {
    title: 'Set up Refit:',
    names: [
      'install',
      'uninstall',
      'credentials',
      'notify',
      'completion',
      'replay',
      'version',
      'help',
    ],
  },
];

/** Returns the commands in the order of the groups, each with the title of its group. Throws if one has no group. */
export function inGroups(commands: readonly CommandSpec[]): CommandSpec[] {
  const names = COMMAND_GROUPS.flatMap((group) => group.names);
  return commands
    .map((command) => ({ ...command, group: titleFor(command.name) }))
    .toSorted((one, other) => names.indexOf(one.name) - names.indexOf(other.name));
}

function titleFor(name: string): string {
  const group = COMMAND_GROUPS.find(({ names }) => names.includes(name));
  if (group === undefined) throw new Error(`the command ${name} has no group in the help`);
  return group.title;
}
