/** Writes the table of `refit status -o wide`: one row for each target. */
import type { Medium } from '../output.ts';
import { table } from '../phrases.ts';
import type { ShownPlan } from './json-form.ts';
import * as sentences from './sentences.ts';

export function wideTable(plan: ShownPlan, now: number, { width }: Medium): string[] {
  const waits = sentences.waitsByTarget(plan);
  const hasAgents = sentences.targetsOf(plan).some(({ agent }) => agent !== undefined);
  const hasMachines =
    plan.kind !== 'Machine' &&
    sentences.targetsOf(plan).some(({ machine }) => machine !== undefined);
  const rows = plan.stages.flatMap((stage) =>
    stage.targets.map((target) => {
      const { role, active } = stage;
      const wait = active ? waits.get(target.name) : undefined;
      const { name, state, age: time, message } = sentences.rowOf(plan, target, wait, now);
      const agent = hasAgents ? [target.agent?.title ?? '-'] : [];
      // The title of the plan has the namespace of the Machine.
      const machine = target.machine?.replace(/^.*\//, '') ?? '-';
      return [
        name,
        ...(hasMachines ? [machine] : []),
        state,
        time,
        role,
        target.from ?? target.installed ?? '-',
        sentences.wantedVersion(plan, stage, target),
        ...agent,
        message,
      ];
    }),
  );
  const header = [
    'NODE',
    ...(hasMachines ? ['MACHINE'] : []),
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
