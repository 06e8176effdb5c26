/** Owns `refit status -w` where nobody looks at a terminal: one plain line for each change, never a line twice. */
import { rfc3339 } from '../../util/clock.ts';
import type { PlanView } from './view.ts';

/** The lines that `after` adds to what was told of `before`. */
export function changesBetween(before: PlanView | undefined, after: PlanView, now: number): string[] {
  const told = new Set(before ? linesOf(before) : []);
  return linesOf(after)
    .filter((line) => !told.has(line))
    .map((line) => `${rfc3339(now)} ${after.kind} ${after.name} ${line}`);
}

function linesOf({ phase, reason, stages, waits }: PlanView): string[] {
  return [
    `is ${phase}${reason ? `: ${reason}` : ''}`,
    ...stages.flatMap(({ role, targets }) =>
      targets
        .filter((target) => target.phase !== 'pending')
        .map(
          (target) =>
            `${role} ${target.name} ${target.step ?? target.phase}${target.failure ? `: ${target.failure}` : ''}`,
        ),
    ),
    ...waits
      .filter(
        ({ gate, reason: { code } }) =>
          gate !== 'slots' && code !== 'InFlight' && code !== 'Intended' && code !== 'Signalled',
      )
      .map(({ gate, reason: { message } }) => `waits (${gate}): ${message}`),
  ];
}
