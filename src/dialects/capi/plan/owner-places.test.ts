/** Proves that the Machines of an owner that are done keep their places in the waves, whatever happens to their Nodes. */
import { describe, expect, test } from 'vitest';
import { MemoryApi } from '../../../../test/support/builders/memory-api.ts';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { OWNER, OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import { later, MINUTE, T0 } from '../../../../test/support/clock/times.ts';
import { nodeRollouts } from '../../../api/kinds.ts';
import { RETRY_ANNOTATION } from '../../../engine/model/controls.ts';
import { nodes, withoutAnnotations } from '../../../kube/resources.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { UPDATE_ANNOTATION, updateOn } from './machine-update.ts';
import { type RememberedRun, rememberedRun, rolloutUid } from './remembered-runs.ts';

const CANARY = { count: 1 };
const APPROVED = { needsApproval: true };

describe('a Machine that is done and deleted', () => {
  test('keeps its place: the next one belongs to the next wave, and needs its approval', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [CANARY, APPROVED] });
    await scene.chosen('w1');
    await scene.finish('w1');
    await scene.chosen('w2');
    scene.delete('w1');
    await scene.settle();
    expect(scene.started()).toEqual([]);
    expect((await scene.ask('w2')).message).toMatch(/^wave 2 .*needs approval/);
    await scene.chosen('w3');
    expect(scene.started()).toEqual([]);
  });

  test('keeps its place also if the next one was chosen before it was done', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [CANARY, APPROVED] });
    await scene.chosen('w1', 'w2');
    await scene.finish('w1');
    scene.delete('w1');
    await scene.settle();
    expect(scene.started()).toEqual([]);
    expect((await scene.ask('w2')).message).toMatch(/^wave 2 .*needs approval/);
  });

  test('keeps its place also if it is deleted before Cluster API chooses the next one', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [{ count: 2 }, APPROVED] });
    await scene.chosen('w1', 'w2');
    await scene.finish('w1');
    await scene.finish('w2');
    scene.delete('w2');
    await scene.chosen('w3');
    expect(scene.started()).toEqual(['w1']);
    expect((await scene.ask('w3')).message).toMatch(/^wave 2 .*needs approval/);
  });

  test('keeps its place after other Machines are done, too', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [CANARY, CANARY, APPROVED] });
    await scene.chosen('w1');
    await scene.finish('w1');
    await scene.chosen('w2');
    scene.delete('w1');
    await scene.settle();
    await scene.clock.advance(MINUTE);
    await scene.finish('w2');
    await scene.chosen('w3');
    expect(scene.started()).toEqual(['w2']);
    expect((await scene.ask('w3')).message).toMatch(/^wave 3 .*needs approval/);
  });

  test('still counts for the settle time of its wave', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [{ ...CANARY, settleMs: 30 * MINUTE }, {}] });
    await scene.chosen('w1');
    await scene.finish('w1');
    await scene.chosen('w2');
    scene.delete('w1');
    await scene.settle();
    expect((await scene.ask('w2')).message).toMatch(/^wave 1 settles for 30 min before wave 2/);
    await scene.clock.advance(31 * MINUTE);
    await scene.settle();
    expect(scene.started()).toEqual(['w2']);
  });

  test('counts for the settle time of its own wave alone', async () => {
    const scene = new OwnerScene();
    const first = { ...CANARY, settleMs: 30 * MINUTE };
    scene.policy = buildPolicy({ name: 'p', waves: [first, CANARY, APPROVED] });
    await scene.chosen('w1', 'w2');
    await scene.finish('w1');
    await scene.clock.advance(31 * MINUTE);
    await scene.settle();
    await scene.finish('w2');
    await scene.chosen('w3');
    for (const name of ['w1', 'w2']) scene.delete(name);
    await scene.settle();
    expect((await scene.ask('w3')).message).toMatch(/^wave 3 .*needs approval/);
  });

  test('counts among the members of its wave for a budget in per cent', async () => {
    const scene = new OwnerScene();
    const maxFailures = { percent: 34 };
    scene.policy = buildPolicy({ name: 'p', waves: [{ count: 3, maxFailures }, {}] });
    await scene.chosen('w1', 'w2', 'w3');
    await scene.finish('w1');
    await scene.clock.advance(MINUTE);
    scene.delete('w1');
    await scene.fail('w2');
    expect(scene.phaseOf('w3')).toBe('running');
  });

  test('counts among all Machines of the owner for a wave with `percent`', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [{ percent: 50 }, APPROVED] });
    await scene.chosen('w1');
    await scene.finish('w1');
    await scene.chosen('w2', 'w3');
    scene.delete('w1');
    await scene.settle();
    expect(scene.started()).toEqual(['w2']);
  });
});

test('a Machine whose request is removed after it was done keeps its place', async () => {
  const scene = new OwnerScene();
  scene.policy = buildPolicy({ name: 'p', waves: [CANARY, APPROVED] });
  await scene.chosen('w1');
  await scene.finish('w1');
  await scene.chosen('w2');
  scene.api.change(nodes, 'w1', (node) => withoutAnnotations(node, UPDATE_ANNOTATION));
  await scene.settle();
  expect(scene.started()).toEqual(['w1']);
  expect((await scene.ask('w2')).message).toMatch(/^wave 2 .*needs approval/);
});

describe('if no Node of the owner has a request any more', () => {
  const LAST: RememberedRun = {
    uid: 'last-run',
    version: 'v1.35.1',
    isDone: false,
    before: { done: 1, lastEnd: later(0) },
    failed: [],
    stopped: undefined,
  };

  test('the last run goes on: its Machines keep their places', async () => {
    const scene = new OwnerScene();
    scene.policy = buildPolicy({ name: 'p', waves: [CANARY, APPROVED] });
    scene.lastRun = LAST;
    await scene.chosen('w2');
    expect(updateOn(scene.node('w2'))?.owner?.rollout).toBe('last-run');
    expect(scene.started()).toEqual([]);
    expect((await scene.ask('w2')).message).toMatch(/^wave 2 .*needs approval/);
    expect(await scene.waitBefore(['w3'])).toBeUndefined();
  });

  test('a pause of the last run stays, also for another version, and an abort stays for the same run', async () => {
    const begun = async (run: RememberedRun): Promise<string[]> => {
      const scene = new OwnerScene();
      scene.lastRun = run;
      await scene.chosen('w2');
      return scene.started();
    };
    const done = { ...LAST, before: undefined };
    expect(await begun({ ...done, stopped: 'paused' })).toEqual([]);
    expect(await begun({ ...done, stopped: 'paused', version: 'v1.34.9' })).toEqual([]);
    expect(await begun({ ...done, stopped: 'aborted' })).toEqual([]);
    expect(await begun({ ...done, stopped: 'aborted', version: 'v1.34.9' })).toEqual(['w2']);
    expect(await begun(done)).toEqual(['w2']);
  });

  test('its failures count until somebody retries them', async () => {
    const scene = new OwnerScene();
    const failure = { code: 'TargetFailed', message: 'FailedDownload' } as const;
    scene.lastRun = { ...LAST, failed: [{ name: 'w1', since: rfc3339(T0), failure }] };
    scene.delete('w1');
    expect(await scene.waitBefore(['w2'])).toMatch(/w1/);
    await scene.chosen('w2');
    expect(scene.started()).toEqual([]);
    expect((await scene.ask('w2')).message).toMatch(/these nodes failed: w1; .*refit retry/);
    scene.control('w2', { [RETRY_ANNOTATION]: `w1@${rfc3339(T0 + MINUTE)}` });
    await scene.settle();
    expect(scene.started()).toEqual(['w2']);
  });

  test.each([
    ['is done', { ...LAST, isDone: true }],
    ['went to another version', { ...LAST, version: 'v1.34.9' }],
  ])('a last run that %s does not go on, and the next one has another uid', async (_what, run) => {
    const scene = new OwnerScene();
    scene.lastRun = run;
    await scene.chosen('w2');
    const rollout = updateOn(scene.node('w2'))?.owner?.rollout;
    expect([rollout === 'last-run', scene.started()]).toEqual([false, ['w2']]);
    const other = new OwnerScene();
    await other.chosen('w2');
    expect(updateOn(other.node('w2'))?.owner?.rollout).not.toBe(rollout);
  });

  test('the last run is the newest one of the NodeRollout of the owner', async () => {
    const api = new MemoryApi();
    const counts = { total: 3, done: 1, failed: 1, inProgress: 0, pending: 1, skipped: 0 };
    const failure = { node: 'w2', reason: 'TargetFailed', message: 'no space' };
    const planUid = rolloutUid(OWNER.uid, 'v1.35.1', 'earlier');
    const run = { id: 'r', planUid, version: 'v1.35.1', started: later(0), phase: 'failed' };
    const earlier = { ...run, planUid: 'earlier', version: 'v1.34.9', phase: 'done', counts };
    api.put(nodeRollouts, {
      metadata: { name: 'capi-md', namespace: 'default' },
      spec: { plan: { apiVersion: 'v1', kind: 'MachineDeployment', name: 'md' } },
      status: {
        history: [{ ...run, counts, ended: later(5), failures: [failure], paused: true }, earlier],
      },
    });
    const { signal } = new AbortController();
    const now = T0 + MINUTE;
    const found = async (owner: typeof OWNER) =>
      await rememberedRun(api.client, 'default', owner, now, signal);
    expect(await found(OWNER)).toEqual({
      uid: planUid,
      version: 'v1.35.1',
      isDone: false,
      before: { done: 1, lastEnd: later(5) },
      stopped: 'paused',
      failed: [
        {
          name: 'w2',
          since: later(5),
          failure: { code: 'TargetFailed', message: 'no space' },
        },
      ],
    });
    expect(await found({ ...OWNER, name: 'another' })).toBeUndefined();
    // A MachineDeployment that was deleted and made again has another uid.
    expect(await found({ ...OWNER, uid: 'another' })).toBeUndefined();
  });
});
