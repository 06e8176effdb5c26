/**
 * Proves which signals belong to a rollout. The uid, the command and the attempt decide this; the plan id alone is
 * never sufficient.
 */
import { describe, expect, test } from 'vitest';
import { buildControlNode, buildNode } from '../../../../test/support/builders/nodes.ts';
import { buildRollout } from '../../../../test/support/builders/rollouts.ts';
import { buildSignal, type OriginalSignal } from '../../../../test/support/builders/signals.ts';
import { buildStage } from '../../../../test/support/builders/stages.ts';
import { buildTarget } from '../../../../test/support/builders/targets.ts';
import { buildWorld } from '../../../../test/support/builders/worlds.ts';
import { later } from '../../../../test/support/clock/times.ts';
import { recordedObjects } from '../../../../test/support/recordings.ts';
import type { Observation } from '../../../engine/model/facts.ts';
import type { RecordedState, Rollout, Stage, Target } from '../../../engine/model/rollout.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { encodeAgentPolicy, encodeReport } from '../../../signal/annotations.ts';
import {
  AGENT_ANNOTATION,
  ATTEMPT_LABEL,
  REPORT_ANNOTATION,
  ROLLOUT_ANNOTATION,
  SIGNAL_DATA_ANNOTATION,
  SIGNAL_VERSION_ANNOTATION,
} from '../../../signal/names.ts';
import { withSignal } from '../../shared/annotation-signal.ts';
import { foreignWork, signal } from './autopilot-signal.ts';

const payload = { url: 'https://example.com/k0s?a=1&b=<2>', sha256: 'ab'.repeat(32) };
const rollout = (more: Partial<Rollout> = {}): Rollout => buildRollout([], { id: 'id1', ...more });
const stage = (more: Partial<Stage> = {}): Stage =>
  buildStage('worker', [], { version: 'v1.36.3+k0s.2', ...more });
const target = (state: RecordedState, since = later(1000)): Target =>
  buildTarget('w1', state, { since });
const annotated = (annotations: Record<string, string>): KubeObject =>
  buildNode('w1', { annotations });

/** Returns an object with a signal of Refit. `status` is the answer of its agent. */
function ours(
  status?: string,
  by: Rollout = rollout(),
  of: Target = target('intended'),
): KubeObject {
  const signalled = withSignal(buildNode('w1'), by, {
    stage: stage(),
    target: of,
    payload,
    agent: {},
  });
  const data = JSON.parse(signalled.metadata.annotations?.[SIGNAL_DATA_ANNOTATION] ?? '') as object;
  const answered =
    status === undefined ? data : { ...data, status: { status, timestamp: later(2000) } };
  return annotated({
    ...signalled.metadata.annotations,
    [SIGNAL_DATA_ANNOTATION]: JSON.stringify(answered),
  });
}

interface Reader {
  readonly by?: Rollout;
  readonly in?: Stage;
  readonly of?: Target;
}

function read(
  object: KubeObject,
  { by = rollout(), in: of = stage(), of: whom = target('intended') }: Reader = {},
): Observation {
  const plan = { metadata: { name: by.source.name } };
  return signal.read(
    buildWorld([object], [object]),
    by,
    of,
    { ...whom, name: object.metadata.name },
    plan,
  );
}

test('a node with more downloads than a check can have was asked once it was asked', () => {
  const stages = Array.from({ length: 10 }, (_, index) =>
    stage({
      id: `${index}`,
      command: index,
      targets: [target('pending')],
      payloads: { 'linux-amd64': payload },
    }),
  );
  const [first = stage()] = stages;
  const by = rollout({ stages });
  const agent = JSON.stringify({ version: '1', since: later(0), checked: { id: '', room: 1 } });
  const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
  const answerOf = (node: KubeObject) =>
    signal.downloads?.checkOf?.(buildWorld([], [node]), by, first, target('pending'))?.answer;
  const node = buildNode('w1', { labels, annotations: { [AGENT_ANNOTATION]: agent } });
  expect(answerOf(node)).toBe('unasked');
  const asked = signal.downloads?.check?.(buildWorld([], [node]), by, first, target('pending'), {});
  expect(asked?.kind === 'replace' && answerOf(asked.object)).toBe('asked');
});

describe('the answer of a node to our signal', () => {
  const seen = { attempt: later(1000), since: later(2000) };
  test.each<[string | undefined, object]>([
    [undefined, { kind: 'sent', attempt: later(1000), since: later(1000) }],
    [
      'Downloading',
      { kind: 'working', step: 'Downloading', part: 'download', cancellable: true, ...seen },
    ],
    [
      'Cordoning',
      {
        kind: 'working',
        step: 'Cordoning',
        part: 'drain',
        waitsFor: 'drain',
        cancellable: true,
        ...seen,
      },
    ],
    ['ApplyingUpdate', { kind: 'working', step: 'ApplyingUpdate', part: 'apply', ...seen }],
    ['Restart', { kind: 'working', step: 'Restart', part: 'restart', ...seen }],
    [
      'UnCordoning',
      {
        kind: 'working',
        step: 'UnCordoning',
        part: 'ready',
        waitsFor: 'uncordon',
        ownsCordon: true,
        ...seen,
      },
    ],
    ['Completed', { kind: 'succeeded', ...seen }],
    [
      'FailedDownload',
      { kind: 'failed', ...seen, message: "FailedDownload: see the node's log for the reason" },
    ],
    ['Failed', { kind: 'failed', ...seen, message: "see the node's log for the reason" }],
    ['SomethingNew', { kind: 'working', step: 'SomethingNew', ...seen }],
  ])('%s', (status, observation) => {
    expect(read(ours(status))).toEqual(observation);
  });

  const reported = (created: string): KubeObject => {
    const report = encodeReport({
      created,
      from: 'v1.36.3+k0s.0',
      reason: 'the server said 404',
      rolledBack: true,
    });
    const object = ours('Failed');
    return annotated({ ...object.metadata.annotations, ...report });
  };

  test('the reason in the report of the agent becomes the message of a failed node', () => {
    expect(read(reported(later(1000)))).toMatchObject({
      message: 'the server said 404',
      report: { from: 'v1.36.3+k0s.0', rolledBack: true },
    });
  });

  test('with a reason while it works: that is why it does not go on', () => {
    const reason = 'crash loop: the process of v2 ended 3 times in 7 s, last with exit code 1';
    const { annotations } = ours('Restart').metadata;
    const report = encodeReport({ created: later(1000), reason });
    expect(read(annotated({ ...annotations, ...report }))).toMatchObject({
      kind: 'working',
      step: 'Restart',
      stalled: reason,
    });
    expect(read(ours('Restart'))).not.toHaveProperty('stalled');
  });

  test('with a reason while it applies the update, as of a kubelet that crashes on a kubeadm host', () => {
    const reason = 'the new kubelet crashed 3 times';
    const { annotations } = ours('ApplyingUpdate').metadata;
    const report = encodeReport({ created: later(1000), from: 'v1.36.2', reason });
    expect(read(annotated({ ...annotations, ...report }))).toMatchObject({
      kind: 'working',
      step: 'ApplyingUpdate',
      stalled: reason,
    });
  });

  test('with a reason from before another agent took it up: that node works', () => {
    const { annotations } = ours('Cordoning').metadata;
    const report = encodeReport({ created: later(1000), reason: 'the agent cannot tell' });
    expect(read(annotated({ ...annotations, ...report }))).not.toHaveProperty('stalled');
  });

  test('with the report that its own drain took too long: which step that was', () => {
    const report = encodeReport({
      created: later(1000),
      reason: 'not drained within 1 h',
      late: 'drain',
    });
    expect(read(annotated({ ...ours('Failed').metadata.annotations, ...report }))).toMatchObject({
      kind: 'failed',
      message: 'not drained within 1 h',
      late: 'drain',
    });
  });

  test('with the report that rules of the node refused it', () => {
    const report = encodeReport({ created: later(1000), reason: 'no sha256', refused: true });
    expect(
      read(annotated({ ...ours('FailedDownload').metadata.annotations, ...report })),
    ).toMatchObject({
      kind: 'failed',
      message: 'Refused before the download: no sha256',
      refused: true,
    });
  });

  test('with a report that belongs to another signal: it means nothing', () => {
    expect(read(reported(later(999_000)))).toMatchObject({
      message: "see the node's log for the reason",
    });
  });
});

describe('none of ours', () => {
  const leftover = { status: 'Completed' };
  test.each<[string, KubeObject, Reader]>([
    ['no annotations', buildNode('w1'), {}],
    ['another version', annotated({ ...buildSignal(), [SIGNAL_VERSION_ANNOTATION]: 'v1' }), {}],
    ['only half of it', annotated({ [SIGNAL_VERSION_ANNOTATION]: 'v2' }), {}],
    [
      'no JSON',
      annotated({ [SIGNAL_VERSION_ANNOTATION]: 'v2', [SIGNAL_DATA_ANNOTATION]: '{' }),
      {},
    ],
    [
      'no command id: invalid, as in the original',
      annotated({
        ...buildSignal(),
        [SIGNAL_DATA_ANNOTATION]: (buildSignal()[SIGNAL_DATA_ANNOTATION] ?? '').replace(
          '"id":0,',
          '',
        ),
      }),
      {},
    ],
    [
      'another plan id',
      annotated(buildSignal({ planId: 'id0', ...leftover })),
      { of: target('pending') },
    ],
    [
      'Refit ignores a report for another command of the same plan; the original accepts it',
      annotated(buildSignal({ command: { id: 1 }, ...leftover })),
      {},
    ],
    [
      'another kind of command',
      annotated(buildSignal({ command: { kind: 'airgapupdate' }, ...leftover })),
      {},
    ],
    [
      'Refit ignores a report older than a plan with a reused id; the original ends the plan',
      annotated(buildSignal({ created: later(-1000), ...leftover })),
      { of: target('pending') },
    ],
    [
      'Refit ignores a report for a deleted plan with the same id, because the uid differs',
      ours('Completed', rollout({ source: { ...rollout().source, uid: 'deleted-plan' } })),
      { of: target('pending') },
    ],
    [
      'a time of creation that is none',
      annotated(buildSignal({ created: 'yesterday', ...leftover })),
      {},
    ],
  ])('%s', (_name, object, reader) => {
    expect(read(object, reader)).toEqual({ kind: 'none' });
  });
});

describe('ours although it does not look so at first', () => {
  test('a signal still belongs to its plan after somebody edits the id of the plan', () => {
    expect(read(ours('Completed'), { by: rollout({ id: 'edited' }) })).toMatchObject({
      kind: 'succeeded',
    });
  });

  test('the plan got another version while it ran: what is under way is under way', () => {
    const edited = stage({ version: 'v1.37.0+k0s.0' });
    expect(read(ours('Restart'), { in: edited })).toMatchObject({ kind: 'working' });
  });

  test('the intent was recorded anew while its signal was on its way: a node that works is not started over', () => {
    const sent = ours('Downloading', rollout(), target('intended', later(0)));
    expect(read(sent, { of: target('intended', later(90_000)) })).toMatchObject({
      attempt: later(0),
    });
  });

  test('recorded as pending, since a status was restored from a backup: our own signal is found again', () => {
    expect(read(ours('Downloading'), { of: target('pending') })).toMatchObject({
      attempt: later(1000),
    });
  });
});

describe('the signal of an original leader', () => {
  const original = (signal: OriginalSignal = {}): KubeObject => annotated(buildSignal(signal));

  test.each<RecordedState>(['pending', 'intended'])(
    'is taken over where the target is %s',
    (state) => {
      expect(read(original({ status: 'Restart' }), { of: target(state, later(0)) })).toEqual({
        kind: 'working',
        step: 'Restart',
        part: 'restart',
        attempt: later(1000),
        since: later(2000),
      });
    },
  );

  test('in its own time zone', () => {
    const created = '2026-11-20T10:00:01+02:00';
    expect(read(original({ created }))).toMatchObject({ kind: 'sent', attempt: created });
  });

  test('written at the very second in which the plan was created', () => {
    expect(read(original({ created: later(0) }))).toMatchObject({ kind: 'sent' });
  });

  test('written over one of ours: our rollout annotation is of another time, and has no effect', () => {
    const before = ours(
      'Completed',
      rollout({ source: { ...rollout().source, uid: 'older-plan' } }),
    );
    const object = annotated({
      ...before.metadata.annotations,
      ...buildSignal({ created: later(5000) }),
    });
    expect(read(object)).toMatchObject({ kind: 'sent', attempt: later(5000) });
  });

  test('under a plan id that was edited since: it cannot be told from a leftover, so the node is signalled again', () => {
    expect(read(original({ status: 'Downloading' }), { by: rollout({ id: 'edited' }) })).toEqual({
      kind: 'none',
    });
  });

  test('as a real one wrote it', () => {
    const node = recordedObjects().find(({ kind }) => kind === 'ControlNode');
    const source = { ...rollout().source, created: '2026-11-20T04:53:21Z' };
    const observation = read(node ?? buildNode('none'), {
      by: rollout({ id: 'x02a', source }),
      of: target('pending'),
    });
    expect(observation).toMatchObject({ kind: 'succeeded', attempt: '2026-11-20T04:54:01Z' });
  });
});

describe('a cordon that nobody signed, on a node that asks to be uncordoned', () => {
  const told = (object: KubeObject, more: Record<string, string> = {}): unknown => {
    const annotations = { ...object.metadata.annotations, ...more };
    const seen = read({ ...object, metadata: { ...object.metadata, annotations } });
    return seen.kind === 'working' && seen.ownsCordon;
  };
  const report = encodeReport({ created: later(1000) });
  test.each<[string, unknown, unknown]>([
    ['under our signal, by an original agent: it goes', told(ours('UnCordoning')), true],
    [
      'the node had it before: it stays',
      told(ours('UnCordoning'), encodeAgentPolicy({ foundCordoned: true })),
      undefined,
    ],
    ['our agent signs its own: it stays', told(ours('UnCordoning'), report), undefined],
    [
      'under the signal of an original leader: it goes',
      told(annotated(buildSignal({ status: 'UnCordoning' }))),
      true,
    ],
    [
      'whoever its agent is',
      told(
        annotated(buildSignal({ status: 'UnCordoning' })),
        encodeReport({ created: later(1000) }),
      ),
      true,
    ],
  ])('%s', (_name, seen, wanted) => {
    expect(seen).toBe(wanted);
  });
});

describe('writing a signal', () => {
  const write = (object: KubeObject, more: Partial<Stage> = {}): KubeObject =>
    withSignal(object, rollout(), {
      stage: stage(more),
      target: target('intended'),
      payload,
      agent: {},
    });

  test('gives what an original agent reads, byte for byte', () => {
    const { annotations } = write(buildNode('w1')).metadata;
    expect(annotations).toEqual({
      'k0sproject.io/autopilot-signal-version': 'v2',
      'k0sproject.io/autopilot-signal-data':
        '{"planId":"id1","created":"2026-11-20T08:00:01Z","command":{"id":0,"k0supdate":{"url":"https://example.com/k0s?a=1\\u0026b=\\u003c2\\u003e","version":"v1.36.3+k0s.2","sha256":"' +
        `${'ab'.repeat(32)}"}}}`,
      'upgrade.refit.dev/rollout': 'plan-uid/2026-11-20T08:00:01Z',
    });
  });

  test('of the second command, forced', () => {
    const data = write(buildNode('w1'), { command: 1, forced: true }).metadata.annotations?.[
      SIGNAL_DATA_ANNOTATION
    ];
    expect(JSON.parse(data ?? '')).toMatchObject({
      command: { id: 1, k0supdate: { forceupdate: true } },
    });
  });

  test('takes the place of an older one, with its answer and its report', () => {
    const before = annotated({
      ...buildSignal({ status: 'Completed' }),
      ...encodeReport({ created: later(0) }),
    });
    const after = write(before);
    expect(read(after)).toEqual({ kind: 'sent', attempt: later(1000), since: later(1000) });
    expect(after.metadata.annotations).not.toHaveProperty(REPORT_ANNOTATION);
  });

  test('writing a signal keeps every other field of the node and does not modify the input object', () => {
    const before = {
      ...buildNode('w1', {
        annotations: { 'example.com/mine': '1', [ROLLOUT_ANNOTATION]: 'old/one' },
      }),
      unknown: { of: 'others' },
    };
    const copy = structuredClone(before);
    const { metadata, ...rest } = write(before);
    expect(before).toEqual(copy);
    expect(rest).toEqual({ ...before, metadata: undefined, ...rest });
    expect({ ...metadata, annotations: undefined }).toEqual({
      ...before.metadata,
      annotations: undefined,
    });
    expect(metadata.annotations).toMatchObject({ 'example.com/mine': '1' });
  });
});

describe('foreign work', () => {
  const foreign = (status?: string, created = later(3000)): Record<string, string> =>
    buildSignal({ planId: 'gone', created, ...(status ? { status } : {}) });
  const named = (controllers: readonly KubeObject[], workers: readonly KubeObject[]): string[] =>
    foreignWork
      .list(buildWorld(controllers, workers), rollout())
      .map(({ name, role }) => `${role} ${name}`);

  test.each([[undefined], ['Downloading'], ['Restart'], ['UnCordoning']])(
    'a node at %s for another plan is one',
    (status) => {
      expect(named([buildControlNode('c1', { annotations: foreign(status) })], [])).toEqual([
        'controller c1',
      ]);
      const labels = { [ATTEMPT_LABEL]: 'gone-uid.2026-11-20T080003Z' };
      expect(named([], [buildNode('w1', { labels, annotations: foreign(status) })])).toEqual([
        'worker w1',
      ]);
      const bare = buildNode('w1', { annotations: foreign(status) });
      expect(named([], [bare])).toEqual([]);
      expect(foreignWork.unproven(buildWorld([], [bare]), rollout())).toEqual(['w1']);
    },
  );

  test.each([['Completed'], ['Failed'], ['FailedDownload']])(
    'one that ended as %s is none',
    (status) => {
      expect(named([], [buildNode('w1', { annotations: foreign(status) })])).toEqual([]);
    },
  );

  test('neither is one of this rollout, nor one without any signal', () => {
    expect(named([], [ours('Restart'), buildNode('w2')])).toEqual([]);
  });
});
