/**
 * Proves that an edit of an ended Plan starts exactly one new rollout if the policy allows it, and otherwise starts no
 * rollout.
 */
import { expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../../test/support/builders/plans.ts';
import { buildReconciler } from '../../../../test/support/builders/reconcilers.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { buildSignal } from '../../../../test/support/builders/signals.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  statusOf,
} from '../../../../test/support/builders/views.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { HOUR, later, T0 } from '../../../../test/support/clock/times.ts';
import { type Plan, plans } from '../../../api/autopilot/plan.ts';
import type { UpgradePolicy } from '../../../api/refit/upgrade-policy.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';
import { RESTART_ANNOTATION } from '../../../engine/model/runs.ts';
import { annotated, nodes, withoutAnnotations } from '../../../kube/resources.ts';
import { decodeSignal, encodeSignal } from '../../../signal/annotations.ts';
import { ATTEMPT_LABEL, ROLLOUT_ANNOTATION } from '../../../signal/names.ts';
import { autopilot } from './autopilot-dialect.ts';
import { PROGRESS_ANNOTATION } from './status-shards/merge.ts';

const NEWER = 'v1.36.4+k0s.0';
const RESTART = buildPolicy({ restartsEdited: true });
const update = buildUpdate({ targets: { workers: listed('w1') } });

/** Returns a Plan whose one worker was upgraded by a leader of Refit, and whose version was edited afterwards. */
function editedPlan(): Plan {
  const status = statusOf('Completed', [], recorded({ w1: 'SignalCompleted' }));
  const plan = buildPlan({ commands: [{ k0supdate: { ...update, version: NEWER } }] }, status);
  return { ...plan, metadata: { ...plan.metadata, generation: 2 } };
}

const signalOfFirstRun = {
  ...buildSignal({ status: 'Completed', timestamp: later(29_000) }),
  [ROLLOUT_ANNOTATION]: `plan-uid/${later(1000)}`,
};

function scene(plan = editedPlan(), policy = RESTART, annotations = signalOfFirstRun) {
  const api = new MemoryApi();
  api.put(plans, plan);
  for (const name of ['w1', 'w2']) api.put(nodes, buildNode(name, { annotations }));
  const leader = (under = policy) => {
    const { catchUp, reconcile } = buildReconciler(autopilot, api, {
      policyFor: () => under,
      clock: new FakeClock(T0 + HOUR),
    });
    return async (): Promise<unknown> => {
      catchUp();
      return await reconcile('autopilot').catch((error: unknown) => error);
    };
  };
  const signal = (node = 'w1') => decodeSignal(api.read(nodes, node).metadata.annotations);
  const state = () => api.read(plans, 'autopilot').status?.state;
  const edit = (change: (plan: Plan) => Plan): void => api.change(plans, 'autopilot', change);
  const complete = (node: string): void => {
    api.change(nodes, node, (seen) => {
      const sent = decodeSignal(seen.metadata.annotations);
      if (!sent) throw new Error(`${node} has no signal`);
      const status = { status: 'Completed', timestamp: later(HOUR) };
      return annotated(seen, encodeSignal({ ...sent, status }));
    });
  };
  return { api, leader, signal, state, edit, complete };
}

function ofGeneration(plan: Plan, generation: number): Plan {
  return { ...plan, metadata: { ...plan.metadata, generation } };
}

/** Returns a Plan whose two workers were upgraded by the first run, and whose version was edited afterwards. */
function editedPlanOfTwo(): Plan {
  const status = statusOf(
    'Completed',
    [],
    recorded({ w1: 'SignalCompleted', w2: 'SignalCompleted' }),
  );
  const targets = { workers: listed('w1', 'w2') };
  const command = { k0supdate: buildUpdate({ version: NEWER, targets }) };
  return ofGeneration(buildPlan({ commands: [command] }, status), 2);
}

const statesIn = (plan: Plan): Record<string, string> =>
  Object.fromEntries(
    (plan.status?.commands[0]?.k0supdate?.workers ?? []).map(({ name, state }) => [name, state]),
  );

test('an edit starts a new rollout, and its signal is not that of the first', async () => {
  const { leader, signal, state } = scene();
  await leader()();
  expect(signal()).toMatchObject({ planId: 'id1-g2', command: { version: NEWER } });
  expect(signal()?.status).toBeUndefined();
  expect(state()).toBe('SchedulableWait');
});

test('by default it starts nothing, as in the original', async () => {
  const { api, leader, state } = scene(editedPlan(), buildPolicy());
  await leader()();
  expect(state()).toBe('Completed');
  expect(api.calls.filter((call) => call.startsWith('replace'))).toEqual([]);
});

test('an abort holds', async () => {
  const { leader, state } = scene(annotated(editedPlan(), { [ABORT_ANNOTATION]: 'stop' }));
  await leader()();
  expect(state()).toBe('Completed');
});

const WRITES = [0, 1, 2, 3, 4];

test.each(WRITES)('a leader that dies before its write %i: the next one goes on', async (index) => {
  const { api, leader, signal, state } = scene();
  let left = index;
  const die = (): void => {
    if (left-- > 0) api.before('replace', die);
    else throw new Error('this leader is gone');
  };
  api.before('replace', die);
  await leader()();
  await leader()();
  expect([signal()?.planId, state()]).toEqual(['id1-g2', 'SchedulableWait']);
});

test('the same edit starts nothing a second time, even if it is refused at once both times', async () => {
  const refusal = 'spec.commands[0].k0supdate.version: "1.36" is not a version; use something';
  const plan = editedPlan();
  const commands = [{ k0supdate: { ...update, version: '1.37' } }];
  const wrong = {
    ...plan,
    spec: { ...plan.spec, commands },
    status: statusOf('Warning', [], [], refusal),
  };
  const { api, leader, state } = scene(wrong);
  const look = leader();
  await look();
  expect(state()).toBe('Warning');
  const written = api.calls.filter((call) => call.startsWith('replace')).length;
  await look();
  await leader()();
  expect(api.calls.filter((call) => call.startsWith('replace'))).toHaveLength(written);
  api.change(plans, 'autopilot', (seen) => ({
    ...seen,
    metadata: { ...seen.metadata, generation: 3 },
    spec: { ...seen.spec, commands: [{ k0supdate: { ...update, version: NEWER } }] },
  }));
  await leader()();
  expect(api.read(plans, 'autopilot').metadata.annotations?.[RESTART_ANNOTATION]).toBe(
    '{"generation":3}',
  );
  expect(state()).toBe('SchedulableWait');
});

test('two leaders at once start it once', async () => {
  const { api, leader, signal, state } = scene();
  const first = leader();
  const second = leader();
  await Promise.all([first(), second()]);
  await Promise.all([first(), second()]);
  const clears = api.calls.filter((call) => call === 'replace plans/autopilot/status');
  expect([signal()?.planId, state()]).toEqual(['id1-g2', 'SchedulableWait']);
  expect(api.read(plans, 'autopilot').metadata.annotations?.[RESTART_ANNOTATION]).toBe(
    '{"generation":2}',
  );
  expect(clears.length).toBeGreaterThan(0);
});

test('a small run after a large one is not taken for a record that lost its StatusShards', async () => {
  const counts = { total: 9000, done: 9000, failed: 0 };
  const plan = annotated(editedPlan(), {
    [PROGRESS_ANNOTATION]: JSON.stringify({ ...counts, at: later(HOUR / 2) }),
  });
  const statusShards = { prefix: 'autopilot-abc', count: 0 };
  const description = JSON.stringify({ targets: counts, statusShards });
  const commands = [{ id: 0, state: 'Completed', description }];
  const { api, leader, signal } = scene({ ...plan, status: { state: 'Completed', commands } });
  const look = leader();
  await look();
  await look();
  expect(signal()).toMatchObject({ planId: 'id1-g2', command: { version: NEWER } });
  const { annotations } = api.read(plans, 'autopilot').metadata;
  expect(annotations?.[PROGRESS_ANNOTATION]).toBeUndefined();
});

test('counts of an earlier run that were written again hold up nothing', async () => {
  const { leader, signal, edit } = scene(editedPlanOfTwo());
  const look = leader();
  await look();
  const counts = JSON.stringify({ total: 9000, done: 9000, failed: 0, at: later(HOUR / 2) });
  edit((seen) => annotated(seen, { [PROGRESS_ANNOTATION]: counts }));
  await look();
  expect(signal()?.planId).toBe('id1-g2');
});

test('the signals of the first run count for nothing after people removed every annotation', async () => {
  const { api, leader, signal, edit, complete } = scene(editedPlanOfTwo());
  const look = leader();
  await look();
  expect(signal()?.planId).toBe('id1-g2');
  edit((seen) => ({ ...seen, metadata: { ...seen.metadata, annotations: {} } }));
  await look();
  expect(statesIn(api.read(plans, 'autopilot'))).toEqual({
    w1: 'SignalSent',
    w2: 'SignalPending',
  });
  complete('w1');
  await look();
  expect(signal('w2')).toMatchObject({ planId: 'id1-g2', command: { version: NEWER } });
  expect(statesIn(api.read(plans, 'autopilot'))['w2']).toBe('SignalSent');
});

test('an edit of the run is part of it: no other run follows its end', async () => {
  const { api, leader, signal, state, edit, complete } = scene();
  const look = leader();
  await look();
  edit((seen) => ofGeneration(seen, 3));
  complete('w1');
  await look();
  await look();
  await leader()();
  expect([state(), signal()?.planId]).toEqual(['Completed', 'id1-g2']);
  expect(statesIn(api.read(plans, 'autopilot'))).toEqual({ w1: 'SignalCompleted' });
});

test('an edit after the end of the second run starts a third one', async () => {
  const { leader, signal, edit, complete } = scene();
  const look = leader();
  await look();
  complete('w1');
  await look();
  edit((seen) => ofGeneration(seen, 3));
  await look();
  expect(signal()?.planId).toBe('id1-g3');
});

test.each(['up-g2', 'g2', '-g2'])('an id that looks like a run, %s, is none', async (id) => {
  const plan = editedPlan();
  const { leader, signal } = scene({ ...plan, spec: { ...plan.spec, id } }, RESTART, {
    ...buildSignal({ planId: id, status: 'Completed', timestamp: later(29_000) }),
    [ROLLOUT_ANNOTATION]: `plan-uid/${later(1000)}`,
  });
  await leader()();
  expect(signal()).toMatchObject({ planId: `${id}-g2`, command: { version: NEWER } });
  expect(signal()?.status).toBeUndefined();
});

test('a signal of the leader of k0s is of no run but the first, whatever its id', async () => {
  const completed = { planId: 'id1-g2', status: 'Completed', timestamp: later(9000) };
  const ordered = annotated(editedPlan(), { [RESTART_ANNOTATION]: '{"generation":2}' });
  const { api, leader, signal } = scene(ordered, RESTART, {
    ...buildSignal(completed),
    [ROLLOUT_ANNOTATION]: '',
  });
  await leader()();
  expect(signal()?.command.version).toBe(NEWER);
  expect(statesIn(api.read(plans, 'autopilot'))).toEqual({ w1: 'SignalSent' });
});

/**
 * Returns a Plan for which the leader has announced the new run, but has not written the first record of that run yet.
 */
async function announced(plan = editedPlan()) {
  const made = scene(plan);
  made.api.before('replace', () => {
    made.api.before('replace', () => {
      throw new Error('this leader is gone');
    });
  });
  await made.leader()();
  expect(made.state()).toBe('Completed');
  expect(made.api.read(plans, 'autopilot').metadata.annotations?.[RESTART_ANNOTATION]).toBe(
    '{"generation":2}',
  );
  return made;
}

test('people see the run that is ordered, not the end of the one before', async () => {
  const { api } = await announced();
  const plan = api.read(plans, 'autopilot');
  const node = api.read(nodes, 'w1');
  const policy: UpgradePolicy = {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'gitops' },
    spec: { edits: { afterEnd: 'Restart' } },
  };
  const look = async (policies: readonly UpgradePolicy[]) =>
    await lookAt([plan], [], [node], T0 + HOUR, buildViewParts({}, policies));
  expect(await look([policy])).toMatchObject([{ phase: 'new' }]);
  expect(await look([])).toMatchObject([{ phase: 'edited' }]);
});

test('an abort that comes before the first record is heeded, and removing it starts the run', async () => {
  const { leader, signal, state, edit } = await announced();
  edit((seen) => annotated(seen, { [ABORT_ANNOTATION]: 'stop' }));
  await leader()();
  expect([state(), signal()?.planId]).toEqual(['Completed', 'id1']);
  edit((seen) => withoutAnnotations(seen, ABORT_ANNOTATION));
  await leader()();
  expect([state(), signal()?.planId]).toEqual(['SchedulableWait', 'id1-g2']);
});

test('a policy that says Ignore before the first record is heeded', async () => {
  const { leader, signal, state } = await announced();
  await leader(buildPolicy())();
  expect([state(), signal()?.planId]).toEqual(['Completed', 'id1']);
});

test('a change of the old status before the first record loses no edit', async () => {
  const { leader, signal, state, edit } = await announced();
  edit((seen) => ({
    ...seen,
    status: statusOf('Completed', [], recorded({ w1: 'SignalCompleted' }, later(9000))),
  }));
  await leader()();
  expect([state(), signal()?.planId]).toEqual(['SchedulableWait', 'id1-g2']);
});

test('of two edits before the first record, the last one starts one run', async () => {
  const { leader, signal, state, edit, complete } = await announced();
  edit((seen) => ofGeneration(seen, 3));
  await leader()();
  expect(signal()?.planId).toBe('id1-g3');
  complete('w1');
  await leader()();
  await leader()();
  expect([state(), signal()?.planId]).toEqual(['Completed', 'id1-g3']);
});

test('a node that still works for the first run counts against the limit of the second', async () => {
  const created = later(1000);
  const { api, leader, signal } = scene(editedPlanOfTwo());
  api.put(
    nodes,
    buildNode('w3', {
      annotations: {
        ...buildSignal({ created, status: 'ApplyingUpdate', timestamp: later(HOUR) }),
        [ROLLOUT_ANNOTATION]: `plan-uid/${created}`,
      },
      labels: { [ATTEMPT_LABEL]: `plan-uid.${created.replaceAll(':', '')}` },
    }),
  );
  await leader()();
  expect([signal('w1')?.planId, signal('w2')?.planId]).toEqual(['id1', 'id1']);
});
