/** Writes the table of `refit status -o wide`: one row for each target. */
import type { Medium } from '../output.ts';
import { table } from '../phrases.ts';
import * as sentences from './sentences.ts';
import type { PlanView } from './view.ts';

export function wideTable(plan: PlanView, now: number, { width }: Medium): string[] {
  const waits = sentences.waitsByTarget(plan);
  const hasAgents = sentences.targetsOf(plan).some(({ agent }) => agent !== undefined);
  const rows = plan.stages.flatMap(({ role, version, active, targets }) =>
    targets.map((target) => {
      const wait = active ? waits.get(target.name) : undefined;
      const { name, state, age: time, message } = sentences.rowOf(target, wait, now);
      const agent = hasAgents ? [target.agent?.title ?? '-'] : [];
      // A plan that was edited has upgraded, or upgrades, the node to the version that it had before the edit.
      const to = target.asked ?? (plan.phase === 'edited' ? target.runs : undefined) ?? version;
      return [
        name,
        state,
        time,
        role,
        target.from ?? target.installed ?? '-',
        to,
        ...agent,
        message,
      ];
    }),
  );
  const header = [
    'NODE',
    'STATE',
    'FOR',
    'ROLE',
    'FROM',
    'TO',
    ...(hasAgents ? ['AGENT'] : []),
    'MESSAGE',
  ];
  return rows.length === 0 ? [] : table(header, rows, width - 2);
}
