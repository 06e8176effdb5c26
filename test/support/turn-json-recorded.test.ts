/** Proves on recordings of a real cluster that a turn which was written as JSON and read back has the same outcome. */

import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/plan/autopilot-dialect.ts';
import { answered } from '../../src/engine/model/asked.ts';
import { gather, type Known } from '../../src/engine/snapshot/gather.ts';
import type { Command } from '../../src/engine/turn/commands.ts';
import type { Node } from '../../src/kube/resources.ts';
import { buildControlNode, buildNode } from './builders/nodes.ts';
import { buildPlan } from './builders/plans.ts';
import { buildPolicy } from './builders/rollout-policies.ts';
import { buildWorld } from './builders/worlds.ts';
import { type RecordedWrite, recordedObject, recordedWrites } from './recordings.ts';
import { outcomeOf, type RecordedTurn, turnFromJson, turnToJson } from './turn-json.ts';

const FOLDER = new URL('../fixtures/autopilot/', import.meta.url);
const NAMES = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.jsonl'))
  .map((name) => name.replace('.jsonl', ''));
const START = Date.parse('2026-11-20T04:10:00Z');

type Annotations = Readonly<Record<string, string>>;
type Patch = Partial<Pick<Plan, 'spec' | 'status'>> & Pick<Partial<Node>, 'spec'>;

/** The objects of the recorded cluster after the writes that were applied so far. */
class RecordedCluster {
  plan: Plan | undefined;
  readonly #controllers = new Map<string, Annotations>(
    ['c1', 'c2', 'c3'].map((name) => [name, {}]),
  );
  readonly #workers = new Map<string, Annotations>(['w1', 'w2', 'w3'].map((name) => [name, {}]));
  readonly #cordoned = new Set<string>();

  apply({ resource, verb, name, code, annotations, spec, status, body }: RecordedWrite): void {
    if (code >= 300) return;
    if (resource === 'plans' || resource === 'plans/status') {
      const made = verb === 'create' ? buildPlan() : this.plan;
      const patch = (body ?? { ...(spec ? { spec } : {}), ...(status ? { status } : {}) }) as Patch;
      this.plan = verb === 'delete' || made === undefined ? undefined : { ...made, ...patch };
      return;
    }
    const objects = resource.startsWith('controlnodes') ? this.#controllers : this.#workers;
    if (verb === 'delete') objects.delete(name);
    else if (annotations && objects.has(name)) objects.set(name, annotations);
    const isCordoned = (body as Patch | undefined)?.spec?.unschedulable;
    if (isCordoned === true) this.#cordoned.add(name);
    else if (isCordoned !== undefined) this.#cordoned.delete(name);
  }

  /** Returns the turn of a leader that reads these objects. */
  turn(plan: Plan, now: number): RecordedTurn {
    const controllers = [...this.#controllers].map(([name, annotations]) =>
      buildControlNode(name, { annotations }),
    );
    const workers = [...this.#workers].map(([name, annotations]) => ({
      ...buildNode(name, { annotations }),
      spec: { unschedulable: this.#cordoned.has(name) },
    }));
    const world = buildWorld(controllers, workers);
    const known: Known = {
      controlPlane: answered(autopilot.endpoints(world).map(({ name }) => ({ name, ready: true }))),
      preconditions: answered([]),
      drainDelegationOf: () => answered(true),
      watch: () => ({ watchedMs: 0, followedMs: 0 }),
    };
    return { snapshot: gather(autopilot, plan, world, now, known), policy: buildPolicy(), now };
  }
}

/** Compares the outcome of the turn with that of its replay, and returns the kinds of its commands. */
function kindsAfterReplay(turn: RecordedTurn): Command['kind'][] {
  const outcome = outcomeOf(turn);
  expect(outcomeOf(turnFromJson(turnToJson(turn)))).toEqual(outcome);
  return outcome.commands.map(({ kind }) => kind);
}

interface Replayed {
  readonly turns: number;
  /** The kinds of the commands of all turns. */
  readonly kinds: readonly Command['kind'][];
}

/** Replays the turn after each write of a recording that changed something. */
function replay(name: string): Replayed {
  const cluster = new RecordedCluster();
  const turns: Command['kind'][][] = [];
  for (const write of recordedWrites(name)) {
    cluster.apply(write);
    if (cluster.plan === undefined) continue;
    turns.push(kindsAfterReplay(cluster.turn(cluster.plan, START + write.t * 1_000)));
  }
  return { turns: turns.length, kinds: turns.flat() };
}

test.each(NAMES)('%s: each turn has the same outcome after a replay', (name) => {
  const { turns } = replay(name);
  expect(turns).toBeGreaterThan(0);
});

test('the turns of a recorded upgrade record and signal', () => {
  const { kinds } = replay('plan-3w-drain-concurrent3');
  expect([...new Set(kinds)].toSorted()).toEqual(['record', 'signal']);
});

test('the turn of the recorded Plan that was completed has the same outcome after a replay', () => {
  const turn = new RecordedCluster().turn(recordedObject('plan-completed') as Plan, START);
  expect(turn.snapshot.rollout.stages.length).toBeGreaterThan(0);
  kindsAfterReplay(turn);
});
