/** Proves that a kubelet, which can change the annotations of its own Node, cannot decide about the plan of its owner. */
import { describe, expect, test } from 'vitest';
import { buildPolicy } from '../../../../test/support/builders/rollout-policies.ts';
import { OwnerScene } from '../../../../test/support/capi/owner-scene.ts';
import {
  ABORT_ANNOTATION,
  controlsOn,
  OPEN_WINDOW_ANNOTATION,
  PAUSE_ANNOTATION,
  RETRY_ANNOTATION,
  withRetry,
} from '../../../engine/model/controls.ts';
import { type Node, nodes, withoutAnnotations } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { rfc3339 } from '../../../util/clock.ts';
import { RECORD_ANNOTATION, UPDATE_ANNOTATION, updateOn } from './machine-update.ts';
import { areControlsSealed, proved } from './owner-controls.ts';
import { CONTROLS_SEAL, UPDATE_SEAL, withSeal } from './seals.ts';

/** A retry that no person has asked for. */
const FORGED = { [RETRY_ANNOTATION]: withRetry(undefined, 'w1', '2099-01-01T00:00:00Z') };

/** Removes the label, as Cluster API does if a kubelet lists it in an annotation. */
function withoutSeal(node: Node): Node {
  return withSeal(node, CONTROLS_SEAL, undefined);
}

/** Two Machines in two waves. The first one is in progress. */
async function begunScene(role: 'worker' | 'controller' = 'worker'): Promise<OwnerScene> {
  const scene = new OwnerScene(role);
  scene.policy = buildPolicy({ name: 'p', waves: [{ count: 1 }, {}] });
  await scene.chosen('w1', 'w2');
  return scene;
}

describe('a kubelet that changes the request on its own Node', () => {
  test.each([
    ['to come first', { requested: '2020-01-01T00:00:00.000Z' }],
    ['to install something else', { url: 'https://evil.example.com/k0s' }],
    ['to get another version', { version: 'v9.9.9' }],
  ])(
    '%s: its Machine is no part of the plan until Cluster API asks again',
    async (_what, change) => {
      const scene = await begunScene();
      scene.forge('w2', change);
      expect(updateOn(scene.node('w2'))).toBeUndefined();
      await scene.settle();
      expect(scene.started()).toEqual(['w1']);
      expect(scene.plans()).toEqual(['w1']);
      await scene.ask('w2');
      await scene.finish('w1');
      const { command } = decodeSignal(scene.node('w2').metadata.annotations) ?? {};
      expect(command?.version).toBe('v1.35.1');
      expect(JSON.stringify(command)).not.toContain('evil');
    },
  );

  test('to get into the plan of another owner: it gets into none', async () => {
    const scene = await begunScene();
    await scene.ask('w3');
    const other = { apiVersion: 'v1', kind: 'MachineDeployment', name: 'other', uid: 'other' };
    scene.forge('w3', { owner: { ...other, rollout: 'another' } });
    expect(scene.plans()).toEqual(['w1']);
  });

  test('as a controller: no other controller starts beside it', async () => {
    const scene = await begunScene('controller');
    scene.forge('w1', { role: 'worker' });
    await scene.settle();
    expect(scene.started()).toEqual(['w1']);
  });
});

test('a kubelet that writes another record on its own Node has no influence on the others', async () => {
  const scene = await begunScene();
  const { annotations = {} } = scene.node('w2').metadata;
  const record = JSON.parse(annotations[RECORD_ANNOTATION] ?? '{}') as object;
  const failed = [{ name: 'w9', since: rfc3339(scene.clock.now()) }];
  scene.annotate('w2', { [RECORD_ANNOTATION]: JSON.stringify({ ...record, failed }) });
  expect(updateOn(scene.node('w2'))).toBeUndefined();
  await scene.finish('w1');
  await scene.chosen('w3');
  expect(scene.started()).toEqual(['w1', 'w3']);
});

test('the seal goes together with the request', async () => {
  const scene = await begunScene();
  expect(scene.node('w2').metadata.labels).toHaveProperty([UPDATE_SEAL]);
  scene.want('w2', 'v1.35.2');
  await scene.ask('w2', 'v1.35.2');
  expect(scene.node('w2').metadata.annotations).not.toHaveProperty([UPDATE_ANNOTATION]);
  expect(scene.node('w2').metadata.labels).not.toHaveProperty([UPDATE_SEAL]);
});

describe('what lets the plan go on, and was not written by Refit,', () => {
  test.each([
    ['a retry', RETRY_ANNOTATION, withRetry(undefined, 'w1', '2099-01-01T00:00:00Z')],
    ['an opened window', OPEN_WINDOW_ANNOTATION, '{"until":"2099-01-01T00:00:00Z"}'],
  ])('such as %s, holds the plan until somebody decides', async (_what, key, value) => {
    const scene = await begunScene();
    scene.annotate('w1', { [key]: value });
    await scene.finish('w1');
    expect((await scene.ask('w2')).message).toMatch(
      /somebody other than Refit changed .*refit resume/,
    );
    expect(scene.started()).toEqual(['w1']);
    scene.control('w1', { [PAUSE_ANNOTATION]: 'true' });
    expect(scene.node('w1').metadata.annotations).not.toHaveProperty([key]);
    expect((await scene.ask('w2')).message).toMatch(/paused/);
  });

  test('such as a retry of a failed Machine, does not let the plan go on', async () => {
    const scene = await begunScene();
    await scene.fail('w1');
    scene.annotate('w1', {
      [RETRY_ANNOTATION]: withRetry(undefined, 'w1', '2099-01-01T00:00:00Z'),
    });
    await scene.settle();
    expect([scene.stateOf('w1'), scene.started()]).toEqual(['failed', ['w1']]);
  });
});

describe.each([
  ['a Machine that Cluster API chooses later', 'v1.35.1'],
  ['a later plan', 'v1.35.2'],
])('%s', (_what, version) => {
  test('does not get a retry that Refit did not write', async () => {
    const scene = await begunScene();
    scene.annotate('w1', FORGED);
    scene.want('w3', version);
    await scene.ask('w3', version);
    const node = scene.node('w3');
    expect(node.metadata.annotations).not.toHaveProperty([RETRY_ANNOTATION]);
    expect(areControlsSealed(node)).toBe(true);
  });

  test.each([
    ['somebody has removed', (node: Node) => withoutAnnotations(node, PAUSE_ANNOTATION)],
    [
      'somebody has removed together with its seal',
      (node: Node) => withoutSeal(withoutAnnotations(node, PAUSE_ANNOTATION)),
    ],
  ])('gets the pause that %s', async (_how, remove) => {
    const scene = await begunScene();
    scene.control('w1', { [PAUSE_ANNOTATION]: 'true' });
    scene.api.change(nodes, 'w1', remove);
    scene.want('w3', version);
    await scene.ask('w3', version);
    expect(scene.node('w3').metadata.annotations).toHaveProperty([PAUSE_ANNOTATION]);
    expect(areControlsSealed(scene.node('w3'))).toBe(true);
  });
});

test('a seal that Cluster API removed, as a kubelet can have it do, does not end a pause', async () => {
  const scene = await begunScene();
  scene.control('w1', { [PAUSE_ANNOTATION]: 'true' });
  scene.api.change(nodes, 'w1', (node) => withoutSeal(withoutAnnotations(node, PAUSE_ANNOTATION)));
  await scene.finish('w1');
  expect(scene.started()).toEqual(['w1']);
  expect((await scene.ask('w2')).message).toMatch(/somebody other than Refit changed/);
});

test('the kubelet of the only Machine with a request cannot end a pause by spoiling its request', async () => {
  const scene = new OwnerScene();
  await scene.chosen('w1');
  await scene.finish('w1');
  scene.control('w1', { [PAUSE_ANNOTATION]: 'true' });
  scene.forge('w1', { url: 'https://evil.example.com/k0s' });
  await scene.chosen('w2');
  expect(scene.started()).toEqual(['w1']);
  expect((await scene.ask('w2')).message).toMatch(/paused/);
});

test('an abort that somebody has removed stays an abort', async () => {
  const scene = await begunScene();
  scene.control('w1', { [ABORT_ANNOTATION]: 'by ann' });
  scene.api.change(nodes, 'w1', (node) => withoutAnnotations(node, ABORT_ANNOTATION));
  await scene.finish('w1');
  expect(scene.started()).toEqual(['w1']);
  const { message } = await scene.ask('w2');
  expect(message).toMatch(/changed upgrade\.refit\.dev\/abort .*run refit abort/);
  expect(controlsOn(proved(scene.node('w1'))).abort).toBeDefined();
});

test('a retry by a person is not written together with one that Refit did not write', async () => {
  const scene = await begunScene();
  scene.annotate('w1', FORGED);
  const known = proved(scene.node('w1')).metadata.annotations?.[RETRY_ANNOTATION];
  const retry = withRetry(known, 'w2', '2026-11-20T08:00:00Z');
  scene.control('w1', { [RETRY_ANNOTATION]: retry });
  expect(scene.node('w1').metadata.annotations).toHaveProperty(
    [RETRY_ANNOTATION],
    'w2@2026-11-20T08:00:00Z',
  );
  expect(areControlsSealed(scene.node('w1'))).toBe(true);
});

describe('a pause', () => {
  test('by kubectl counts, although it has no seal', async () => {
    const scene = await begunScene();
    scene.annotate('w1', { [PAUSE_ANNOTATION]: 'true' });
    await scene.finish('w1');
    expect(scene.started()).toEqual(['w1']);
    expect((await scene.ask('w2')).message).toMatch(/paused/);
  });

  test('that Refit wrote is not ended by a removal of its annotation', async () => {
    const scene = await begunScene();
    scene.control('w1', { [PAUSE_ANNOTATION]: 'true' });
    scene.api.change(nodes, 'w1', (node) => withoutAnnotations(node, PAUSE_ANNOTATION));
    await scene.finish('w1');
    expect(scene.started()).toEqual(['w1']);
    expect((await scene.ask('w2')).message).toMatch(
      /changed upgrade\.refit\.dev\/pause on node w1/,
    );
  });
});

describe('the seal of the controls', () => {
  const without = (node: Node, ...keys: string[]): boolean =>
    areControlsSealed(withoutAnnotations(node, ...keys));
  const RETRY = { [RETRY_ANNOTATION]: 'a@2026-01-01T00:00:00Z' };

  test('says of a Node that nobody controls that there is nothing', async () => {
    const scene = await begunScene();
    expect(areControlsSealed(scene.node('w1'))).toBe(true);
    expect(scene.node('w1').metadata.labels?.[CONTROLS_SEAL]).toMatch(/^[0-9a-f]{8}\.none$/);
  });

  test('is a valid value of a label, and holds for exactly what was written', async () => {
    const scene = await begunScene();
    scene.control('w1', { [PAUSE_ANNOTATION]: 'true', [ABORT_ANNOTATION]: 'by ann', ...RETRY });
    const all = scene.node('w1');
    const value = all.metadata.labels?.[CONTROLS_SEAL] ?? '';
    expect(value).toMatch(/^[0-9a-f]{8}\.paused\.aborted\.[0-9a-f]{32}$/);
    expect(value.length).toBeLessThanOrEqual(63);
    expect(areControlsSealed(all)).toBe(true);
    for (const key of [PAUSE_ANNOTATION, ABORT_ANNOTATION, RETRY_ANNOTATION])
      expect([key, without(all, key)]).toEqual([key, false]);
  });

  test('is another one on another Node, so that no Node can use it', async () => {
    const scene = await begunScene();
    scene.control('w1', RETRY);
    const { metadata } = scene.node('w1');
    const copied: Node = { metadata: { ...metadata, name: 'another' } };
    expect([areControlsSealed({ metadata }), areControlsSealed(copied)]).toEqual([true, false]);
  });
});
