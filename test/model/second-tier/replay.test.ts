/**
 * Tests that each turn of every leader in the exploration can be written as JSON, and that a replay makes the same
 * commands.
 */

import { expect, test } from 'vitest';
import { autopilot } from '../../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { assess } from '../../../src/engine/assess/assess.ts';
import { answered } from '../../../src/engine/model/asked.ts';
import { gather, type Known } from '../../../src/engine/snapshot/gather.ts';
import { freshWorld, OwnWrites } from '../../../src/engine/snapshot/world.ts';
import { type Command, commandsFor } from '../../../src/engine/turn/commands.ts';
import { turnFromJson, turnToJson } from '../../support/turn-json.ts';
import { type Configuration } from '../cluster.ts';
import { configure, V2, V3 } from '../configure.ts';
import { explore } from '../explorer.ts';
import { type LeaderView, realLeader, viewsOfRoles } from '../leader.ts';
import { World } from '../world.ts';

/**
 * Returns the commands of the first turn on this view, after its probes are answered: `commands` as decided, and
 * `again` as decided in a replay.
 */
function turnOn(view: LeaderView): { commands: readonly Command[]; again: readonly Command[] } {
  const world = freshWorld(viewsOfRoles(view.objects), new OwnWrites());
  const known: Known = {
    controlPlane: answered(
      autopilot.endpoints(world).map(({ name }) => ({ name, ready: !view.down.includes(name) })),
    ),
    preconditions: answered([]),
    drainDelegationOf: () => answered(view.drainDelegation),
    watch: () => ({ watchedMs: view.watchedMs, followedMs: view.watchedMs }),
  };
  const turn = {
    snapshot: gather(autopilot, view.plan, world, view.now, known),
    policy: view.policy,
    now: view.now,
  };
  const replayed = turnFromJson(turnToJson(turn));
  return {
    commands: commandsFor(assess(turn.snapshot, turn.policy, turn.now)),
    again: commandsFor(assess(replayed.snapshot, replayed.policy, replayed.now)),
  };
}

test.each<[string, Configuration]>([
  ['a controller and a worker', configure('c1 w1', 'c1 w1')],
  ['a worker with two commands', configure('w1', 'w1', { versions: [V2, V3] })],
  [
    'a plan that is paused, aborted and retried',
    configure('w1', 'w1', { controls: ['abort', 'pause', 'retry'], faults: 1 }),
  ],
])('%s: every turn is the same after a replay', async (_name, configuration) => {
  const kinds = new Set<Command['kind']>();
  let turns = 0;
  const leader = async (view: LeaderView) => {
    const { commands, again } = turnOn(view);
    expect(again).toEqual(commands);
    for (const { kind } of commands) kinds.add(kind);
    turns++;
    return await realLeader(view);
  };
  const { violation } = await explore(new World(configuration, { leader }).model());
  expect(violation).toBeUndefined();
  expect(turns).toBeGreaterThan(20);
  expect(kinds).toContain('signal');
  expect(kinds).toContain('record');
});
