/** Proves that a signal is written only if its object is the same as at the decision. */

import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../test/support/builders/rollouts.ts';
import { buildStage, PAYLOAD } from '../../../test/support/builders/stages.ts';
import { buildTablePlan, tableDialect } from '../../../test/support/builders/table-dialect.ts';
import { buildTarget } from '../../../test/support/builders/targets.ts';
import { NO_FAILURES } from '../../../test/support/builders/whole-records.ts';
import { buildWorld } from '../../../test/support/builders/worlds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { jobs, type KubeObject, nodes, type Resource } from '../../kube/resources.ts';
import { StatusError } from '../../kube/status-error.ts';
import type { Dialect } from '../contract/dialect.ts';
import type { World } from '../contract/world.ts';
import type { Signalling } from '../model/decision.ts';
import type { Rollout } from '../model/rollout.ts';
import { DEFAULT_POLICY } from '../policy/rollout-policy.ts';
import { OwnWrites } from '../snapshot/world.ts';
import { record } from './record.ts';
import { send } from './writes.ts';

const plans: Resource = {
  group: 'example.com',
  version: 'v1',
  kind: 'Plan',
  plural: 'plans',
  namespaced: false,
};
const plan: KubeObject = { metadata: { name: 'plan', resourceVersion: '7' } };
const stage = buildStage('worker', [buildTarget('w1', 'intended'), buildTarget('w2', 'intended')]);
const signals = stage.targets.map(
  (target): Signalling => ({ stage, target, payload: PAYLOAD, agent: {} }),
);

const refusal = (code: number, reason: string): StatusError =>
  new StatusError({ kind: 'Status', code, reason });

interface Server {
  readonly plan: KubeObject | StatusError;
  /**
   * The error that the API server returns for the write of an object, by the name of the object. Without an entry, the
   * write succeeds.
   */
  readonly answers?: Readonly<Record<string, StatusError>>;
}

/** Sends the signals in a cluster whose cache has these objects at resourceVersion 1. Returns all requests in order. */
async function sendAll(
  server: Server,
  objects: readonly KubeObject[],
  all: readonly Signalling[] = signals,
) {
  const asked: string[] = [];
  const client = {
    get: async (resource: Resource, name: string) => {
      asked.push(`get ${resource.plural}/${name}`);
      return await (server.plan instanceof StatusError
        ? Promise.reject(server.plan)
        : Promise.resolve(server.plan));
    },
    replace: async (resource: Resource, object: KubeObject) => {
      const { name, resourceVersion } = object.metadata;
      asked.push(`put ${resource.plural}/${name} at ${resourceVersion}`);
      const answer = server.answers?.[name];
      return await (answer ? Promise.reject(answer) : Promise.resolve(object));
    },
  } as unknown as KubeClient;
  const dialect = {
    plans,
    signal: {
      send(world: World, _rollout: Rollout, { target }: Signalling) {
        const object = world.get(nodes, target.name);
        return object && { kind: 'replace', resource: nodes, object };
      },
    },
  };
  const world = buildWorld([], objects);
  const effects = {
    dialect: dialect as unknown as Dialect,
    client,
    world,
    ownWrites: new OwnWrites(),
  };
  const sent = await send(effects, plan, buildRollout([stage]), all);
  return {
    asked,
    results: sent.map(({ signalling, result }) => `${signalling.target.name} ${result}`),
  };
}

/** Sends the signals of w1 and w2. */
async function sendBoth(server: Server, objects = [buildNode('w1'), buildNode('w2')]) {
  return await sendAll(server, objects);
}

test.each([100, 101, 250])('each of %i signals is written once, 100 at a time', async (count) => {
  const names = Array.from({ length: count }, (_each, index) => `n${index}`);
  const all = names.map(
    (name): Signalling => ({
      stage,
      target: buildTarget(name, 'intended'),
      payload: PAYLOAD,
      agent: {},
    }),
  );
  const objects = names.map((name) => buildNode(name));
  const { asked, results } = await sendAll({ plan }, objects, all);
  const written = asked.filter((each) => each.startsWith('put'));
  expect(written).toEqual(names.map((name) => `put nodes/${name} at 1`));
  expect(results).toEqual(names.map((name) => `${name} written`));
  // The plan is read before each batch of 100 signals.
  expect(asked.length - written.length).toBe(Math.ceil(count / 100));
});

test('signals carry the observed resourceVersion, and the plan is read before them', async () => {
  expect(await sendBoth({ plan })).toEqual({
    asked: ['get plans/plan', 'put nodes/w1 at 1', 'put nodes/w2 at 1'],
    results: ['w1 written', 'w2 written'],
  });
});

test.each([
  ['was recorded anew since', { metadata: { name: 'plan', resourceVersion: '8' } }],
  ['is gone', refusal(404, 'NotFound')],
])('nothing is written where the plan %s', async (_, found) => {
  expect(await sendBoth({ plan: found })).toEqual({
    asked: ['get plans/plan'],
    results: ['w1 outdated', 'w2 outdated'],
  });
});

test.each([
  ['has changed', refusal(409, 'Conflict')],
  ['is gone', refusal(404, 'NotFound')],
])('an object that %s is left to the next decision, the others are not', async (_, answer) => {
  const { results } = await sendBoth({ plan, answers: { w1: answer } });
  expect(results).toEqual(['w1 outdated', 'w2 written']);
});

test('an object that was never observed is not written', async () => {
  const { asked, results } = await sendBoth({ plan }, [buildNode('w2')]);
  expect(asked).toEqual(['get plans/plan', 'put nodes/w2 at 1']);
  expect(results).toEqual(['w1 outdated', 'w2 written']);
});

test.each([
  ['the plan cannot be read', { plan: refusal(500, 'InternalError') }],
  [
    'a write is refused for another reason',
    { plan, answers: { w1: refusal(500, 'InternalError') } },
  ],
])('an error is passed on where %s', async (_, server) => {
  await expect(sendBoth(server)).rejects.toThrow(StatusError);
});

test.each([
  [422, 'Invalid', 'is invalid', 'invalid'],
  [403, 'Forbidden', 'forbidden', 'refused'],
  [
    500,
    'InternalError',
    'Internal error occurred: failed calling webhook "jobs.example.com": refused',
    'refused',
  ],
])(
  'a Job whose creation is answered with %d %s (%s) counts as %s',
  async (code, reason, message, result) => {
    const answer = new StatusError({ kind: 'Status', code, reason, message });
    const client = {
      get: async () => await Promise.resolve(plan),
      create: async () => await Promise.reject(answer),
    };
    const signal = {
      ...tableDialect.signal,
      send: () => ({ kind: 'create', resource: jobs, object: plan }) as const,
    };
    const dialect = { ...tableDialect, signal } as unknown as Dialect;
    const effects = { dialect, client: client as unknown as KubeClient, world: buildWorld([], []) };
    const sent = await send(
      { ...effects, ownWrites: new OwnWrites() },
      plan,
      buildRollout([stage]),
      signals.slice(0, 1),
    );
    expect(sent).toMatchObject([{ result, refusal: message }]);
  },
);

test('every request ends with the signal of its reconcile', async () => {
  const given: { abort?: AbortSignal }[] = [];
  const client = {
    get: async (_resource: Resource, _name: string, options: { abort?: AbortSignal }) => {
      given.push(options);
      return await Promise.resolve(plan);
    },
    replace: async (_resource: Resource, object: KubeObject, options: { abort?: AbortSignal }) => {
      given.push(options);
      return await Promise.resolve(object);
    },
  } as unknown as KubeClient;
  const { signal: abort } = new AbortController();
  const world = buildWorld([], [buildNode('w1')]);
  const effects = {
    dialect: tableDialect as unknown as Dialect,
    client,
    world,
    ownWrites: new OwnWrites(),
    abort,
  };
  const rollout = buildRollout([stage]);
  await record(
    effects,
    {
      plan: buildTablePlan({ workers: ['w1'] }),
      policy: DEFAULT_POLICY,
      before: rollout,
      after: rollout,
      failures: NO_FAILURES,
    },
    0,
  );
  await send(effects, plan, rollout, signals.slice(0, 1));
  expect(given.map((options) => options.abort)).toEqual([abort, abort, abort]);
});
