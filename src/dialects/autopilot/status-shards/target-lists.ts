/** Reads and replaces the lists of targets in a Plan's status. */
import type { CommandStatus, Plan, TargetStatus } from '../../../api/autopilot/plan.ts';

/** A list by its path in the status of its command. */
export type ListName = 'k0supdate.controllers' | 'k0supdate.workers' | 'airgapupdate.workers';

export interface TargetList {
  readonly command: number;
  readonly list: ListName;
  readonly entries: readonly TargetStatus[];
}

export function listsOf({ status }: Plan): TargetList[] {
  return (status?.commands ?? []).flatMap(({ id, k0supdate, airgapupdate }) => [
    { command: id, list: 'k0supdate.controllers', entries: k0supdate?.controllers ?? [] },
    { command: id, list: 'k0supdate.workers', entries: k0supdate?.workers ?? [] },
    { command: id, list: 'airgapupdate.workers', entries: airgapupdate?.workers ?? [] },
  ]);
}

/** Replaces each list with the result of `replace`. Empty lists, and members with only empty lists, are left out. */
export function withLists(plan: Plan, replace: (list: TargetList) => TargetStatus[]): Plan {
  if (!plan.status) return plan;
  const replaced = new Map(listsOf(plan).map((each) => [`${each.command}/${each.list}`, replace(each)]));
  const member = (id: number, list: ListName, name: string): Record<string, TargetStatus[]> => {
    const entries = replaced.get(`${id}/${list}`) ?? [];
    return entries.length > 0 ? { [name]: entries } : {};
  };
  const commands = plan.status.commands.map(({ k0supdate, airgapupdate, ...rest }): CommandStatus => {
    const { controllers: _controllers, workers: _workers, ...update } = k0supdate ?? {};
    const { workers: _bundles, ...bundle } = airgapupdate ?? {};
    const nodes = {
      ...update,
      ...member(rest.id, 'k0supdate.controllers', 'controllers'),
      ...member(rest.id, 'k0supdate.workers', 'workers'),
    };
    const bundles = { ...bundle, ...member(rest.id, 'airgapupdate.workers', 'workers') };
    return {
      ...rest,
      ...(Object.keys(nodes).length > 0 ? { k0supdate: nodes } : {}),
      ...(Object.keys(bundles).length > 0 ? { airgapupdate: bundles } : {}),
    };
  });
  return { ...plan, status: { ...plan.status, commands } };
}
