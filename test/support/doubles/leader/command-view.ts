/**
 * A common view of both kinds of commands: what a command requests, its groups of targets, and the status entries of
 * these targets.
 */
import type {
  CommandStatus,
  PlanCommand,
  TargetSpec,
  TargetStatus,
} from '../../../../src/api/autopilot/plan.ts';
import { type KubeObject, nodes, type Resource } from '../../../../src/kube/resources.ts';
import { controlNodes } from '../../../../src/signal/names.ts';

export interface Group {
  readonly role: 'controllers' | 'workers';
  /** The kind of the objects that carry the signals. */
  readonly resource: Resource;
  readonly target: TargetSpec | undefined;
  readonly entries: TargetStatus[];
}

export interface CommandView {
  readonly kind: 'k0supdate' | 'airgapupdate';
  readonly version: string;
  readonly forceupdate: boolean;
  readonly platforms: Readonly<Record<string, { readonly url: string; readonly sha256?: string }>>;
  /** The groups in the order in which they are updated. */
  readonly groups: readonly Group[];
  readonly status: CommandStatus;
}

/**
 * Returns the view of the first member that the command has. The members are checked in the order of the original's
 * struct, and all members after the first are ignored. Undefined if the command has no known member.
 */
export function viewOf(command: PlanCommand, status: CommandStatus): CommandView | undefined {
  const { k0supdate, airgapupdate } = command;
  if (k0supdate !== undefined) {
    const { version, platforms, forceupdate = false, targets } = k0supdate;
    const groups = [
      group('controllers', controlNodes, targets.controllers, status.k0supdate?.controllers),
      group('workers', nodes, targets.workers, status.k0supdate?.workers),
    ];
    return { kind: 'k0supdate', version, platforms, forceupdate, groups, status };
  }
  if (airgapupdate === undefined) return undefined;
  const { version, platforms, workers } = airgapupdate;
  const groups = [group('workers', nodes, workers, status.airgapupdate?.workers)];
  return { kind: 'airgapupdate', version, platforms, forceupdate: false, groups, status };
}

function group(
  role: Group['role'],
  resource: Resource,
  target: TargetSpec | undefined,
  entries: TargetStatus[] | undefined,
): Group {
  return { role, resource, target, entries: entries ?? [] };
}

/** Puts the targets that were found into the status. Leaves out a group that has no targets. */
export function recordTargets({ kind, groups, status }: CommandView): void {
  const found = groups
    .filter(({ entries }) => entries.length > 0)
    .map(({ role, entries }) => [role, entries]);
  const lists = Object.fromEntries(found) as Record<Group['role'], TargetStatus[]>;
  if (kind === 'k0supdate') status.k0supdate = lists;
  else status.airgapupdate = lists;
}

/** Returns the platform, such as `linux-amd64`. Undefined if a label is missing. */
export function platformOf(object: KubeObject): string | undefined {
  const { 'kubernetes.io/os': os, 'kubernetes.io/arch': arch } = object.metadata.labels ?? {};
  return os === undefined || arch === undefined ? undefined : `${os}-${arch}`;
}
