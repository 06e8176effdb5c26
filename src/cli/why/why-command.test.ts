/** Shows what `refit why` prints for constructed clusters: what waits, for what, until when, and what to do. */
import { expect, test } from 'vitest';
import { buildCattlePlan } from '../../../test/support/builders/cattle-plans.ts';
import { DIALECTS } from '../../../test/support/builders/dialects.ts';
import { buildMachineUpdate } from '../../../test/support/builders/machine-updates.ts';
import { buildControlNode, buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import {
  buildViewParts,
  lookAt,
  recorded,
  signalled,
  statusOf,
} from '../../../test/support/builders/views.ts';
import { buildWorldOf } from '../../../test/support/builders/worlds-of-kinds.ts';
import { later, MINUTE, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { withRequest } from '../../dialects/capi/plan/machine-update.ts';
import { newPlan } from '../../dialects/kubeadm/plan/plan-object.ts';
import { PAUSE_ANNOTATION } from '../../engine/model/controls.ts';
import type { Wait } from '../../engine/model/decision.ts';
import { because, type ReasonCode } from '../../engine/model/reasons.ts';
import { CONDITIONS_ANNOTATION } from '../../engine/model/written-conditions.ts';
import { jobs, type KubeObject, type Node, nodes } from '../../kube/resources.ts';
import { encodePresence } from '../../signal/agent-presence.ts';
import { encodeReport } from '../../signal/annotations.ts';
import { AGENT_ANNOTATION } from '../../signal/names.ts';
import { mediumOf } from '../output.ts';
import type { ShownPlan } from '../status/json-form.ts';
import type { LeaderView } from '../status/load.ts';
import { observe } from '../status/observe.ts';
import { isMoving } from '../status/sentences.ts';
import { chiefLine, notStarted, whyLines } from './why-command.ts';

const NOW = T0 + MINUTE;
const HELD: LeaderView = { state: 'held', holder: 'a', since: later(0) };

const PIPE = mediumOf({ hasColours: false, size: () => ({ columns: Infinity, rows: Infinity }) });

/** Returns one text for each plan. With `node`, returns one text for each stage that has the node. */
function why(
  plans: readonly ShownPlan[],
  node?: string,
  leader: LeaderView = HELD,
  now = NOW,
): string[] {
  return whyLines({ leader, plans }, node, now, PIPE).join('\n').split('\n\n');
}

/** Returns the views of a plan whose dialect has Nodes as targets. */
async function lookOf(
  name: string,
  plan: KubeObject,
  ...workers: readonly Node[]
): Promise<ShownPlan[]> {
  const dialect = DIALECTS.find((each) => each.name === name);
  if (!dialect) throw new Error(`no dialect ${name}`);
  return await observe(
    { dialect: dialect, plans: () => [plan], world: buildWorldOf([nodes, workers], [jobs, []]) },
    buildViewParts(),
    NOW,
  );
}

const commands = [
  {
    k0supdate: buildUpdate({
      targets: { workers: { ...listed('w1', 'w2', 'w3'), limits: { concurrent: 1 } } },
    }),
  },
];
const plan = (status?: Plan['status']): Plan => buildPlan({ commands }, status);
const running = plan(
  statusOf(
    'SchedulableWait',
    [],
    recorded({ w1: 'SignalSent', w2: 'SignalPending', w3: 'SignalPending' }),
  ),
);
const failed = plan(
  statusOf(
    'ApplyFailed',
    [],
    recorded({ w1: 'SignalApplyFailed', w2: 'SignalPending', w3: 'SignalPending' }),
    'w1: no socket',
  ),
);
const W1 = signalled(buildNode('w1'), {
  created: later(1000),
  status: 'Restart',
  timestamp: later(30_000),
});
const W2 = buildNode('w2');
const W3 = buildNode('w3');

test('refit why shows the step of a node, how long other workers wait, and what ends the wait', async () => {
  expect(why(await lookAt([running], [], [W1, W2, W3], NOW))).toEqual([
    `Plan autopilot (id1)  running 0/3 for 59 s  to v1.36.3+k0s.2
  now     w1 Restart (30 s)
  waits   2 workers queued (1 at a time) (59 s)
  ends    when the node reports that it is done, or that it failed
          when a node in progress is done
  limit   w1 fails at 2026-11-20T08:14:35Z if this step has not ended by then
  next    w2
  agents  k0s's own on w1: no roll-back, no resumed download, no proof that the node is Ready
  you can refit pause, refit abort`,
  ]);
});

test.each([
  [30, 'w1 rolls back at 2026-11-20T08:02:00Z if the new version has not answered by then'],
  [100, 'w1 rolls back by 2026-11-20T08:04:00Z if its node is not Ready by then'],
  [300, 'w1 fails at 2026-11-20T08:14:35Z if this step has not ended by then'],
])("at Restart our agent's own roll-back comes first: after %d s", async (seconds, line) => {
  const announced = { [AGENT_ANNOTATION]: encodePresence({ version: '1.0.0', since: later(0) }) };
  const report = encodeReport({ created: later(1000), from: 'v1.35.5+k0s.0' });
  const ours = signalled(
    W1,
    { created: later(1000), status: 'Restart', timestamp: later(30_000) },
    { ...announced, ...report },
  );
  const now = T0 + 30_000 + seconds * 1000;
  expect(why(await lookAt([running], [], [ours, W2, W3], now), 'w1', undefined, now)[0]).toContain(
    `\n  limit   ${line}\n`,
  );
});

test('an agent that waits for its clock says so', async () => {
  const report = encodeReport({ created: later(1000), reason: 'longer than 7d after 1970' });
  const waiting = signalled(buildNode('w1'), { created: later(1000) }, report);
  expect(why(await lookAt([running], [], [waiting, W2, W3], NOW), 'w1')[0]).toContain(
    '\n  agent   has not begun: longer than 7d after 1970',
  );
});

test('a gate, a slot and an earlier stage: each node is told what it waits for', async () => {
  const reported = signalled(buildNode('w1', {}, 'False'), {
    created: later(1000),
    status: 'Completed',
    timestamp: later(30_000),
  });
  const views = await lookAt([running], [], [reported, W2, W3], NOW);
  expect(why(views, 'w1')[0]).toContain(
    '\n  now     w1 upgraded, verifying (30 s): node w1 is not Ready (NodeNotReady)\n',
  );
  expect(why(views, 'w1')[0]).toContain('\n  ends    when the node is Ready\n');
  expect(why(views, 'w2')).toEqual([
    `w2  worker of Plan autopilot (id1)  running 0/3 for 59 s  to v1.36.3+k0s.2
  waits   2 workers queued (1 at a time) (59 s)
  ends    when a node in progress is done
  next    it is among the next to start`,
  ]);
  expect(why(views, 'w3')[0]).toContain('2 workers queued (1 at a time)');
  const two = buildPlan(
    {},
    statusOf('SchedulableWait', recorded({ c1: 'SignalSent' }), recorded({ w1: 'SignalPending' })),
  );
  expect(why(await lookAt([two], [], [W2], NOW), 'w1')[0]).toContain(
    '\n  waits   until the controllers are done (59 s)',
  );
});

test('a worker is told what holds back the controllers before it, too', async () => {
  const status = statusOf(
    'Schedulable',
    recorded({ c1: 'SignalPending' }),
    recorded({ w1: 'SignalPending' }),
  );
  const bare = buildPlan({}, status);
  const paused = {
    ...bare,
    metadata: { ...bare.metadata, annotations: { [PAUSE_ANNOTATION]: 'true' } },
  };
  const [text] = why(await lookAt([paused], [buildControlNode('c1')], [W2], NOW), 'w1');
  expect(text).toContain(
    '\n  waits   the plan is paused: nothing new starts until it is resumed (Paused, 59 s)\n',
  );
  expect(text).toContain('\n  waits   until the controllers are done (59 s)');
});

test('a paused plan that something else holds first: the pause is named, too', async () => {
  const bare = plan(statusOf('Schedulable', [], recorded({ w1: 'SignalPending' })));
  const paused = {
    ...bare,
    metadata: { ...bare.metadata, annotations: { [PAUSE_ANNOTATION]: 'true' } },
  };
  const [view] = await lookAt([paused], [], [buildNode('w1'), W2], NOW);
  if (view === undefined) throw new Error('the plan is not shown');
  const unreadable = {
    gate: 'policy-readable',
    reason: { code: 'PolicyUnreadable', message: 'UpgradePolicy nightly cannot be read' },
    since: later(0),
    ofStage: true,
  } as const;
  const line = '\n  paused  the plan is paused, too: nothing new starts until it is resumed\n';
  const held = { ...view, waits: [unreadable] };
  expect(why([held])[0]).toContain(line);
  expect(why([held], 'w1')[0]).toContain(line);
  // If the pause is the first thing that blocks the plan, the line about the wait already names the pause.
  expect(why([view])[0]).not.toContain('is paused, too');
});

test('a node in progress finishes during a pause, so why does not name the pause', async () => {
  const [view] = await lookAt([running], [], [W1, W2], NOW);
  if (view === undefined) throw new Error('the plan is not shown');
  const paused = { ...view, paused: 'plan' } as const;
  const moving = view.stages.flatMap(({ targets }) => targets).find(isMoving);
  expect(moving).toBeDefined();
  expect(why([paused], moving?.name)[0]).not.toContain('is paused, too');
});

test('the first advice is the command that ends what the plan waits for', async () => {
  const [view] = await lookAt([plan()], [], [buildNode('w1'), W2, W3], NOW);
  if (view === undefined) throw new Error('the plan is not shown');
  const waiting = (code: ReasonCode, more: Partial<Wait> = {}): ShownPlan => ({
    ...view,
    waits: [{ gate: 'g', reason: because(code, 'so'), since: later(0), ofStage: true, ...more }],
  });
  const advice = (given: ShownPlan): string | undefined =>
    /\n {2}you can (.*)\n {10}refit pause, refit abort$/.exec(why([given])[0] ?? '')?.[1];
  expect(advice(waiting('WaveNeedsApproval', { unapproved: 2 }))).toBe(
    'refit approve autopilot/autopilot --wave 2',
  );
  expect(advice(waiting('Held', { target: 'w1' }))).toBe('refit unhold w1');
  expect(advice(waiting('WindowClosed'))).toBe('refit start autopilot/autopilot --now --for 2h');
  expect(advice(waiting('Blackout'))).toBe(
    'refit start autopilot/autopilot --now --for 2h --blackouts',
  );
  // While the plan is paused, no node starts, so a hold is not offered. It is offered only while other nodes can start.
  const paused = { ...waiting('WindowClosed'), paused: 'plan' } as const;
  expect(why([paused])[0]).toMatch(/\n {2}you can refit resume, refit abort$/);
  const [moving] = await lookAt([running], [], [W1, W2, W3], NOW);
  if (moving === undefined) throw new Error('the plan is not shown');
  const { waits } = waiting('Held', { target: 'w2' });
  expect(why([{ ...moving, waits }])[0]).toMatch(/\n {2}you can refit pause, refit abort$/);
});

test('the chief line is about a node that is stuck before it is about the queue', async () => {
  const [view] = await lookAt([running], [], [W1, W2, W3], NOW);
  if (view === undefined) throw new Error('the plan is not shown');
  const chiefOf = (given: ShownPlan, leader: LeaderView = HELD): string =>
    chiefLine({ leader, plans: [given] }, given, NOW);
  expect(chiefOf(view)).toBe('w1 Restart (30 s)');
  const waits = view.waits.map((wait) =>
    wait.target === 'w1' ? { ...wait, gate: 'g', reason: because('DrainBlocked', 'so') } : wait,
  );
  expect(waits).not.toEqual(view.waits);
  expect(chiefOf({ ...view, waits })).toBe('w1 Restart (30 s): so (DrainBlocked)');
  expect(chiefOf(view, { state: 'none' })).toContain('No leader');
  const [ended] = await lookAt([failed], [], [W1, W2, W3], NOW);
  if (ended === undefined) throw new Error('the plan is not shown');
  expect(chiefOf(ended)).toContain('no socket');
  const [pending] = ended.stages.flatMap((stage) =>
    stage.targets
      .filter(({ name }) => name === 'w2')
      .map((target) => notStarted(ended, stage, target)),
  );
  expect(pending).toContain('not started: w1: no socket');
});

test('if there are several plans, the advice of why names the plan', async () => {
  const [view] = await lookAt([running], [], [W1, W2], NOW);
  if (view === undefined) throw new Error('the plan is not shown');
  expect(why([view])[0]).toMatch(/\n {2}you can refit pause, refit abort$/);
  const flag = '--plan autopilot/autopilot';
  expect(why([view, { ...view, name: 'other' }])[0]).toMatch(
    new RegExp(`\\n {2}you can refit pause ${flag}, refit abort ${flag}$`),
  );
  // The filter of the user selects one plan of several.
  const filtered = whyLines({ leader: HELD, plans: [view], hasOthers: true }, undefined, NOW, PIPE);
  expect(filtered.at(-1)).toBe(`  you can refit pause ${flag}, refit abort ${flag}`);
});

test('a gate that holds all of them, and says so of the first only, is told of each', async () => {
  const others = signalled(buildControlNode('c9'), {
    planId: 'old',
    created: later(0),
    status: 'Restart',
  });
  const waiting = plan(
    statusOf('Schedulable', [], recorded({ w2: 'SignalPending', w3: 'SignalPending' })),
  );
  const views = await lookAt([waiting], [others], [W2, W3], NOW);
  expect(views[0]?.waits.map(({ target }) => target)).toEqual(['w2']);
  for (const name of ['w2', 'w3']) {
    expect(why(views, name)[0]).toContain(
      '\n  waits   c9 is still at work for another plan (ForeignWork, 59 s)\n',
    );
  }
});

test('a node that others were let past, since it does not tell yet what an earlier command brought: why, and what ends that', async () => {
  const targets = { workers: { ...listed('w1', 'w2'), limits: { concurrent: 1 } } };
  const versions = ['v1.35.4+k0s.0', 'v1.36.3+k0s.2'];
  const command = (id: number, state: string, w1: string, w2: string) => ({
    id,
    state,
    k0supdate: { controllers: [], workers: recorded({ w1, w2 }) },
  });
  const two = buildPlan(
    { commands: versions.map((version) => ({ k0supdate: buildUpdate({ version, targets }) })) },
    {
      state: 'SchedulableWait',
      commands: [
        command(0, 'Completed', 'SignalCompleted', 'SignalCompleted'),
        command(1, 'SchedulableWait', 'SignalPending', 'SignalSent'),
      ],
    },
  );
  const w1 = buildNode('w1');
  const w2 = buildNode('w2');
  const silent = { ...w1, status: { ...w1.status, nodeInfo: { kubeletVersion: 'v1.34.9+k0s.0' } } };
  const past = signalled(w2, { created: later(1000), status: 'Restart', command: { id: 1 } });
  const [text] = why(await lookAt([two], [], [silent, past], NOW), 'w1').slice(1);
  expect(text).toContain(
    'an earlier command brought it to v1.35.4+k0s.0, which it does not report yet',
  );
  expect(text).toContain('\n  ends    when the node reports the version of the earlier command');
});

test('why of a controller names the gate that holds the controller before it', async () => {
  const bare = buildPlan(
    {},
    statusOf('Schedulable', recorded({ c1: 'SignalPending', c2: 'SignalPending' }), []),
  );
  const message = 'the API server of c2 (no answer) is not ready';
  const blocked = { type: 'Blocked', status: 'True', reason: 'ControlPlaneNotReady', message };
  const annotations = { [CONDITIONS_ANNOTATION]: JSON.stringify([blocked]) };
  const two = { ...bare, metadata: { ...bare.metadata, annotations } };
  const views = await lookAt([two], [buildControlNode('c1'), buildControlNode('c2')], [], NOW);
  expect(why(views, 'c2')[0]).toContain('(no answer) is not ready (ControlPlaneNotReady, 59 s)');
  expect(why(views, 'c2')[0]).not.toContain('queued');
  expect(why(views, 'c2')[0]).toContain(
    '\n  ends    when every API server answers that it is ready\n',
  );
  expect(views[0]?.next).toEqual(['c1']);
});

test('an API server that is behind: what would be newer than it, and what ends that, for each node', async () => {
  const behind = { ...buildControlNode('c1'), status: { k0sVersion: 'v1.35.4+k0s.0' } };
  const waiting = plan(
    statusOf('Schedulable', [], recorded({ w2: 'SignalPending', w3: 'SignalPending' })),
  );
  const views = await lookAt([waiting], [behind], [W2, W3], NOW);
  for (const name of ['w2', 'w3']) {
    expect(why(views, name)[0]).toContain(
      'newer than the API server of c1 (v1.35.4+k0s.0) (rule KubeletAhead; versions.allow: [KubeletAhead] of an UpgradePolicy allows it)',
    );
    expect(why(views, name)[0]).toContain('\n  ends    when those API servers are upgraded');
  }
});

test('why says that nobody leads and that no node starts until then', async () => {
  const [text] = why(await lookAt([running], [], [W1, W2, W3], NOW), undefined, { state: 'none' });
  expect(text).toMatch(
    /^ {2}why {5}No leader: no refit controller holds lease k0s-autopilot\/k0s-autopilot-controller\. No new node starts until one runs\.\n {2}ends {4}when a refit controller runs and acquires the lease\n {2}now/m,
  );
});

test('why says of a failed plan, and of its nodes, why it failed and what to do', async () => {
  const gone = signalled(buildNode('w1'), {
    created: later(1000),
    status: 'Failed',
    timestamp: later(30_000),
  });
  const views = await lookAt([failed], [], [gone, W2, W3], NOW);
  const advice =
    '\n  to do   Failed. Fix the cause (the node, or the version, url or sha256 in the Plan), then run: refit retry w1. If the release is bad: run refit upgrade VERSION, which replaces this Plan.';
  expect(why(views)[0]).toContain(
    'failed 0/3 after 29 s, 30 s ago  to v1.36.3+k0s.2\n  why     w1: no socket\n',
  );
  expect(why(views)[0]).toSatisfy((text: string) => text.endsWith(advice));
  expect(why(views, 'w1')[0]).toContain(
    "\n  why     w1 failed (30 s): see the node's log for the reason\n",
  );
  const stopped =
    '\n  stopped 1 node failed (w1), more than failureBudget 0 (the default, since no UpgradePolicy applies) allows, so w2, w3 never started';
  expect(why(views, 'w2')[0]).toContain(
    `\n  why     not started: w1: no socket${stopped}${advice}`,
  );
});

test('a plan that will be refused waits for nothing', async () => {
  const [text] = why(await lookAt([plan()], [], [W2], NOW));
  expect(text).toContain('\n  why     w1 does not exist as a worker');
  expect(text).not.toContain('  ends ');
});

test('why says of a plan without targets that nothing was done', async () => {
  const none = buildPlan(
    { commands: [{ k0supdate: buildUpdate({ targets: {} }) }] },
    statusOf('Completed', [], [], 'there was no target, so nothing was done'),
  );
  expect(why(await lookAt([none], [], [], NOW))[0]).toMatch(
    /\n {2}why {5}there was no target, so nothing was done\n {2}to do {3}No node was upgraded\./,
  );
});

test('why shows only the first line of a plan that is done', async () => {
  const done = buildPlan(
    { commands: [{ k0supdate: buildUpdate({ targets: { workers: listed('w1') } }) }] },
    statusOf('Completed', [], recorded({ w1: 'SignalCompleted' })),
  );
  const views = await lookAt([done], [], [buildNode('w1')], NOW);
  expect(why(views)).toEqual([
    'Plan autopilot (id1)  done 1/1 after 1 s, 59 s ago  to v1.36.3+k0s.2',
  ]);
  expect(why(views, 'w1')[0]).toMatch(/\n {2}done {4}59 s ago, has v1\.36\.3\+k0s\.2$/);
});

test('a Plan of the system-upgrade-controller: whose work it is, and what is wrong with it', async () => {
  const host = { labels: { 'kubernetes.io/hostname': 'w1' } };
  const [held] = why(
    await lookOf('cattle', buildCattlePlan('p'), buildNode('w1', host, 'False')),
    'w1',
  );
  expect(held).toContain('\n  waits   node w1 is not Ready (NodeNotReady, 1 min)\n');
  expect(held).toContain(
    'the system-upgrade-controller carries it out; this command cannot see whether it is running',
  );
  const drain = { deleteEmptydirData: true, deleteLocalData: true };
  const [refused] = why(
    await lookOf('cattle', buildCattlePlan('p', { drain }), buildNode('w1', host)),
  );
  expect(refused).toContain(
    '\n  why     spec.drain cannot specify both deleteEmptydirData and deleteLocalData\n  to do   ',
  );
});

test('why explains a kubeadm upgrade and a Machine of Cluster API', async () => {
  const request = {
    version: 'v1.36.3',
    concurrent: 1,
    leader: ['w1'],
    followers: [],
    certificates: [],
    kubelets: [],
    workers: ['w2', 'w3'],
  };
  const metadata = {
    name: 'refit-kubeadm',
    namespace: 'kube-system',
    uid: 'u',
    creationTimestamp: later(0),
  };
  const [text] = why(
    await lookOf('kubeadm', { ...newPlan(request, 'sha256:1'), metadata }, buildNode('w1'), W2, W3),
    'w2',
  );
  expect(text).toMatch(
    /note {4}`refit kubeadm apply` carries it out.*\n {2}waits {3}until the controllers are done \(1 min\)$/,
  );
  const [machine] = why(await lookOf('capi', withRequest(W2, buildMachineUpdate()), W2), 'w2');
  expect(machine).toContain('w2  worker of Machine ns/m');
  for (const name of ['m', 'ns/m'])
    expect(why(await lookOf('capi', withRequest(W2, buildMachineUpdate()), W2), name)).toEqual([
      machine,
    ]);
  expect(machine).toContain('`refit capi-extension` carries it out');
});

test('a node that rests after its upgrade does not fail when that is over', async () => {
  const views = await lookAt(
    [running],
    [],
    [signalled(W1, { created: later(0), status: 'Restart' }), W2, W3],
    NOW,
  );
  const message = 'w1 keeps its slot for 5 min after its success';
  const rest = {
    target: 'w1',
    gate: 'rest-over',
    reason: { code: 'Resting', message },
    ends: 'the rest period is over',
  } as const;
  const waits = [{ ...rest, since: later(0), until: later(5 * MINUTE) }];
  expect(why(views)[0]).toContain('\n  limit ');
  expect(why(views.map((view) => ({ ...view, waits })))[0]).not.toContain('\n  limit ');
});
