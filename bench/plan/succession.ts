/**
 * Measures how long a free slot stays empty: the time from the report that one node is done to the signal of the next
 * node.
 */
import type { Sighting } from '../../test/support/expectations/signal-watch.ts';

const SIGNALLED = '';
const DONE = 'Completed';

/**
 * Returns the milliseconds from the end of one target to the signal of the next target, for every target except the
 * first. A controller follows the controller before it. The first workers, as many as there are slots, follow the last
 * controller. Each later worker follows the worker that freed its slot.
 */
export function successions(
  sightings: readonly Sighting[],
  controllers: readonly string[],
  slots: number,
): number[] {
  const times = (status: string, isController: boolean): number[] =>
    sightings
      .filter(
        (sighting) =>
          sighting.status === status && controllers.includes(sighting.name) === isController,
      )
      .map(({ at }) => at)
      .toSorted((a, b) => a - b);
  const controllersDone = times(DONE, true);
  const workersDone = times(DONE, false);
  const lastController = controllersDone.at(-1) ?? Number.NaN;
  return [
    ...times(SIGNALLED, true)
      .slice(1)
      .map((at, index) => at - (controllersDone[index] ?? Number.NaN)),
    ...times(SIGNALLED, false).map(
      (at, index) => at - (workersDone[index - slots] ?? lastController),
    ),
  ];
}

/**
 * Returns the milliseconds from each status of a node to its next status. The keys are `<status> → <next>`, in the
 * order in which they first occur.
 */
export function stepTimes(sightings: readonly Sighting[]): ReadonlyMap<string, number[]> {
  const steps = new Map<string, number[]>();
  const last = new Map<string, Sighting>();
  for (const sighting of sightings) {
    const before = last.get(sighting.name);
    last.set(sighting.name, sighting);
    if (before === undefined) continue;
    const step = `${before.status || 'signalled'} → ${sighting.status || 'signalled'}`;
    steps.set(step, [...(steps.get(step) ?? []), sighting.at - before.at]);
  }
  return steps;
}
