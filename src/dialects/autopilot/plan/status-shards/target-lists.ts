/** Reads and replaces the lists of targets in a Plan's status. */
import type { CommandStatus, Plan, TargetStatus } from '../../../../api/autopilot/plan.ts';
import type { Stage } from '../../../../engine/model/rollout.ts';

/** The paths of the lists in the status of a command. */
const LISTS = ['k0supdate.controllers', 'k0supdate.workers', 'airgapupdate.workers'] as const;
export type ListName = (typeof LISTS)[number];

export interface TargetList {
  readonly command: number;
  readonly list: ListName;
  readonly entries: readonly TargetStatus[];
}

export function listOf({ procedure, role }: Pick<Stage, 'procedure' | 'role'>): ListName {
  return procedure === 'airgapupdate' ? 'airgapupdate.workers' : `k0supdate.${role}s`;
}

export function entriesIn(command: CommandStatus, list: ListName): readonly TargetStatus[] {
  const [member, name] = partsOf(list);
  return (command[member] as Lists | undefined)?.[name] ?? [];
}

/**
 * Returns the command with another list. An empty list is removed. The field around the list is removed, too, if it
 * contains nothing else.
 */
export function withEntries(
  command: CommandStatus,
  list: ListName,
  entries: readonly TargetStatus[],
): CommandStatus {
  const [member, name] = partsOf(list);
  const { [member]: lists = {}, ...rest } = command;
  const { [name]: _, ...others } = lists as Lists;
  const next = entries.length > 0 ? { ...others, [name]: entries } : others;
  return Object.keys(next).length > 0 ? { ...rest, [member]: next } : rest;
}

export function listsOf({ status }: Plan): TargetList[] {
  return (status?.commands ?? []).flatMap((command) =>
    LISTS.map((list) => ({ command: command.id, list, entries: entriesIn(command, list) })),
  );
}

export function withLists(plan: Plan, replace: (list: TargetList) => TargetStatus[]): Plan {
  return withCommands(plan, (command) => {
    let next = command;
    for (const list of LISTS) {
      const entries = replace({ command: command.id, list, entries: entriesIn(command, list) });
      next = withEntries(next, list, entries);
    }
    return next;
  });
}

export function withCommands(
  plan: Plan,
  replace: (command: CommandStatus, index: number) => CommandStatus,
): Plan {
  return plan.status
    ? { ...plan, status: { ...plan.status, commands: plan.status.commands.map(replace) } }
    : plan;
}

type Lists = Readonly<Partial<Record<'controllers' | 'workers', readonly TargetStatus[]>>>;

function partsOf(list: ListName): ['k0supdate' | 'airgapupdate', 'controllers' | 'workers'] {
  return list.split('.') as ['k0supdate' | 'airgapupdate', 'controllers' | 'workers'];
}
