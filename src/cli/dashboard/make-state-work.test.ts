/** Shows that the work for the state of the page grows with the number of nodes, and not with its square. */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { buildViewParts, lookAt } from '../../../test/support/builders/views.ts';
import { MINUTE, T0 } from '../../../test/support/clock/times.ts';
import { HOLD_ANNOTATION, writeHold } from '../../signal/holds.ts';
import { rfc3339 } from '../../util/clock.ts';
import type { ShownPlan } from '../status/json-form.ts';
import { stateOf } from './make-state.ts';

test.each([
  ['all nodes may start at once', () => false],
  ['every second node is held', (index: number) => index % 2 === 0],
])('%s: four times as many nodes, at most five times as many reads', async (_name, isHeld) => {
  const few = await readsWith(50, isHeld);
  expect(await readsWith(200, isHeld)).toBeLessThan(5 * few);
});

/** Returns how many list members are read to compute the state for a plan with `count` nodes. */
async function readsWith(count: number, isHeld: (index: number) => boolean): Promise<number> {
  const names = Array.from({ length: count }, (_, index) => `w${index}`);
  const workers = { ...listed(...names), limits: { concurrent: count } };
  const k0supdate = buildUpdate({ targets: { workers } });
  const hold = { [HOLD_ANNOTATION]: writeHold({ by: 'ada', since: rfc3339(T0) }) };
  const nodes = names.map((name, index) =>
    buildNode(name, { annotations: isHeld(index) ? hold : {} }),
  );
  const now = T0 + MINUTE;
  const plan = buildPlan({ commands: [{ k0supdate }] });
  const plans = await lookAt([plan], [], nodes, now, buildViewParts());
  let reads = 0;
  const counted = <T>(list: readonly T[]): readonly T[] =>
    new Proxy(list, {
      get(target, key, receiver) {
        reads++;
        return Reflect.get(target, key, receiver) as unknown;
      },
    });
  const watched = plans.map(
    (view): ShownPlan => ({
      ...view,
      next: counted(view.next),
      waits: counted(view.waits),
      stages: view.stages.map((stage) => ({ ...stage, targets: counted(stage.targets) })),
    }),
  );
  stateOf(
    { status: { leader: { state: 'unknown' }, plans: watched }, rollouts: [], missing: [] },
    now,
  );
  return reads;
}
