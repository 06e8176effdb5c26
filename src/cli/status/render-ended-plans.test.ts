/**
 * Shows when an ended plan is not reported as done: it was edited, it had no target, or its nodes run another version.
 */
import { expect, test } from 'vitest';
import { buildNode } from '../../../test/support/builders/nodes.ts';
import { buildPlan, buildUpdate, listed } from '../../../test/support/builders/plans.ts';
import { lookAt, recorded, signalled, statusOf } from '../../../test/support/builders/views.ts';
import { HOUR, later, T0 } from '../../../test/support/clock/times.ts';
import type { Plan } from '../../api/autopilot/plan.ts';
import { mediumOf } from '../output.ts';
import { whyLines } from '../why/why-command.ts';
import type { ShownPlan } from './json-form.ts';
import { render } from './render.ts';
import { exitCodeOf } from './status-command.ts';

const COMPLETED = statusOf('Completed', [], recorded({ w1: 'SignalCompleted' }));
const targets = { workers: listed('w1') };
const update = buildUpdate({ targets });
const ran = signalled(
  { ...buildNode('w1'), status: { nodeInfo: { kubeletVersion: 'v1.36.3+k0s' } } },
  { status: 'Completed', timestamp: later(29_000) },
);
const LOOK = { hasColours: false, size: () => ({ columns: 160, rows: 24 }), advises: true };

async function look(plan: Plan): Promise<ShownPlan> {
  const [view] = await lookAt([plan], [], [ran], T0 + HOUR);
  if (!view) throw new Error('no view');
  return view;
}

/** Matches the advice to run the plan anew, in the words of each section. */
const ANEW = /delete (?:the Plan|it) and apply it again/;

const edited = buildPlan(
  { commands: [{ k0supdate: { ...update, version: 'v1.37.0+k0s.0' } }] },
  COMPLETED,
);

test('a Plan of k0s that was not edited is done', async () => {
  const { phase, reason } = await look(buildPlan({ commands: [{ k0supdate: update }] }, COMPLETED));
  expect([phase, reason]).toEqual(['done', undefined]);
});

test('status does not call a Plan done if a new version was applied after its end and nothing ran', async () => {
  const view = await look(edited);
  expect(view).toMatchObject({
    phase: 'edited',
    reason:
      'the plan was edited after it ended (it was carried out with v1.36.3+k0s.2 and now says v1.37.0+k0s.0); it will not run: delete it and apply it again',
    stages: [{ targets: [] }, { targets: [{ name: 'w1', runs: 'v1.36.3+k0s.2' }] }],
  });
  const text = render({ leader: { state: 'none' }, plans: [view] }, 'wide', T0 + HOUR, LOOK);
  expect(text).toContain('runs v1.36.3+k0s');
  expect(text).toContain('(its spec now says v1.37.0+k0s.0)');
  expect(text).not.toContain('  to v1.37.0+k0s.0');
  // No node was upgraded to the version that the edited Plan names.
  expect(text).toMatch(/^ {2}w1 .* worker +- +v1\.36\.3\+k0s\.2 /m);
});

test('a Plan that failed and was edited: a retry continues it with the edit, for all nodes that are left', async () => {
  const status = statusOf('ApplyFailed', [], recorded({ w1: 'SignalApplyFailed' }));
  const view = await look({ ...edited, status });
  expect(view.reason).toMatch(
    /; it will not run: delete it and apply it again, or retry a failed node \(run refit retry NODE\), which carries out the edited plan on all nodes that are not done$/,
  );
  const text = render({ leader: { state: 'none' }, plans: [view] }, 'text', T0 + HOUR, {
    ...LOOK,
    size: () => ({ columns: 400, rows: 24 }),
  });
  expect(text).toContain(
    '  to do   The edit is not carried out, because the plan had ended. To continue with the edit, run: refit retry w1. To run it for all nodes: delete the Plan and apply it again.\n',
  );
});

test('status says that a node which was added to the list of an ended Plan was not part of it', async () => {
  const more = buildUpdate({ targets: { workers: listed('w1', 'w2') } });
  const view = await look(buildPlan({ commands: [{ k0supdate: more }] }, COMPLETED));
  expect(view.reason).toContain('w2 is listed now but was not part of the plan when it ended');
});

const refusal = 'spec.commands[0].k0supdate.version: "1.36" is not a version; use something';
const refused = statusOf('Warning', [], [], refusal);

test.each([
  ['as it was', '1.36', 'invalid', refusal],
  [
    'corrected',
    'v1.36.3+k0s.2',
    'edited',
    'the plan was edited after it ended (spec.commands[0].k0supdate.version: "1.36" was refused, and is correct now); it will not run: delete it and apply it again',
  ],
])('a Plan that was refused for a field: %s', async (_name, version, phase, reason) => {
  const plan = buildPlan({ commands: [{ k0supdate: { ...update, version } }] }, refused);
  const view = await look(plan);
  expect([view.phase, view.reason]).toEqual([phase, reason]);
});

const REMOVED =
  'flowschemas.flowcontrol.apiserver.k8s.io v1beta2 has been removed in Kubernetes v1.29.0, but there are 2 such resources in the cluster';

test.each([
  ['as it was', 'v1.30.1+k0s.0', 'invalid', REMOVED],
  [
    'for a release that still has the API',
    'v1.28.4+k0s.0',
    'edited',
    'the plan was edited after it ended (it was refused because of an API that v1.29.0 removed, and now has v1.28.4+k0s.0); it will not run: delete it and apply it again',
  ],
])('a Plan that a leader refused with RemovedApis: %s', async (_name, version, phase, reason) => {
  const status = statusOf('Warning', [], [], REMOVED);
  const view = await look(buildPlan({ commands: [{ k0supdate: { ...update, version } }] }, status));
  expect([view.phase, view.reason]).toEqual([phase, reason]);
});

test('a Plan that a leader refused with RemovedApis: what to do with the objects', async () => {
  const status = statusOf('Warning', [], [], REMOVED);
  const version = 'v1.30.1+k0s.0';
  const view = await look(buildPlan({ commands: [{ k0supdate: { ...update, version } }] }, status));
  const text = render({ leader: { state: 'none' }, plans: [view] }, 'text', T0 + HOUR, {
    ...LOOK,
    size: () => ({ columns: 400, rows: 24 }),
  });
  expect(text).toContain(
    '  to do   Refused. Migrate the objects that the message names to a version that is still served, or delete them. Then: delete the Plan and apply it again.\n',
  );
});

const UNVERIFIED =
  'the download for linux-amd64 has no sha256, and UpgradePolicy nightly requires one; to allow this, set spec.payloads.requireSha256: false in the policy';

test.each([
  ['as it was', {}, 'invalid', UNVERIFIED],
  [
    'with the hash',
    { sha256: 'a'.repeat(64) },
    'edited',
    'the plan was edited after it ended (the download that was refused has been replaced); it will not run: delete it and apply it again',
  ],
])('a Plan that was refused with Unverified: %s', async (_name, hash, phase, reason) => {
  const platforms = { 'linux-amd64': { url: 'https://example.com/k0s', ...hash } };
  const status = statusOf('Warning', [], [], `Unverified: ${UNVERIFIED}`);
  const view = await look(
    buildPlan({ commands: [{ k0supdate: { ...update, platforms } }] }, status),
  );
  expect([view.phase, view.reason]).toEqual([phase, reason]);
});

test('a Plan whose selector matches nothing did nothing', async () => {
  const nobody = buildUpdate({
    targets: { workers: { ...listed(), discovery: { selector: { labels: 'zone=mars' } } } },
  });
  const status = statusOf('Completed', [], []);
  const view = await look(buildPlan({ commands: [{ k0supdate: nobody }] }, status));
  expect([view.phase, view.reason]).toEqual(['empty', 'there was no target, so nothing was done']);
});

test('a watch exits with 1 at an end that is not true any more', async () => {
  const done = await look(buildPlan({ commands: [{ k0supdate: update }] }, COMPLETED));
  const other = await look(edited);
  expect([exitCodeOf([done]), exitCodeOf([done, other])]).toEqual([0, 1]);
});

test.each<[string, Plan['status'], RegExp]>([
  ['done', COMPLETED, ANEW],
  ['failed', statusOf('ApplyFailed', [], recorded({ w1: 'SignalApplyFailed' })), ANEW],
])(
  'status, why and why NODE advise only once what to do about a Plan that was %s and then edited',
  async (_name, status, advice) => {
    const view = await look({ ...edited, ...(status === undefined ? {} : { status }) });
    const seen = { leader: { state: 'none' } as const, plans: [view] };
    const medium = mediumOf(LOOK);
    const outputs = [
      render(seen, 'text', T0 + HOUR, LOOK),
      whyLines(seen, undefined, T0 + HOUR, medium).join(' '),
      whyLines(seen, 'w1', T0 + HOUR, medium).join(' '),
    ].map((text) => text.replaceAll(/\s+/g, ' '));
    for (const text of outputs) {
      expect(text.split(advice)).toHaveLength(2);
      expect(text).not.toContain('it will not run');
      expect(text.split('refit retry').length).toBeLessThanOrEqual(2);
    }
  },
);

test.each([
  ['InconsistentTargets', 'an API server was not ready', 'Repair the API server'],
  ['MissingSignalNode', 'a node of the plan did not exist', 'Correct the name'],
  ['SomethingNew', 'this release of Refit does not know', 'apply it again'],
])(
  'a Plan that another leader left in the state %s without a text has a reason and an advice',
  async (state, reason, advice) => {
    const status = statusOf(state, [], recorded({ w1: 'SignalPending' }));
    const view = await look(buildPlan({ commands: [{ k0supdate: update }] }, status));
    const text = render({ leader: { state: 'none' }, plans: [view] }, 'text', T0 + HOUR, LOOK);
    expect(view.reason).toContain(reason);
    expect(text).toContain(state);
    expect(text).toContain(advice);
  },
);
