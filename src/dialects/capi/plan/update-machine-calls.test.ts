/** Tests the calls that update a Machine, from the first one to the last. */
import { describe, expect, test } from 'vitest';
import { failed, underWay, withoutRequest } from '../../../../test/support/capi/machine-answers.ts';
import { MachineScene } from '../../../../test/support/capi/machine-scene.ts';
import { ABORT_ANNOTATION } from '../../../engine/model/controls.ts';
import { nodes } from '../../../kube/resources.ts';
import { decodeSignal } from '../../../signal/annotations.ts';
import { updateOn } from './machine-update.ts';

const DONE = { status: 'Success', retryAfterSeconds: 0 };

describe('an update from the first call to the last', () => {
  const scene = new MachineScene(['w1']);

  test('UpdateMachine writes the update request to the Node before its first answer, and only once', async () => {
    expect(await scene.ask('w1')).toMatchObject(underWay('node w1 is about to start'));
    const update = updateOn(scene.node('w1'));
    expect(update).toMatchObject({
      machine: 'default/m-w1',
      version: 'v1.35.1',
      role: 'worker',
      platform: 'linux-amd64',
      url: 'https://example.com/v1.35.1/linux-amd64/k0s',
      sha256: 'ab'.repeat(32),
    });
    expect(await scene.ask('w1')).toMatchObject(underWay('w1 is about to be signalled'));
    expect(updateOn(scene.node('w1'))).toEqual(update);
    expect(scene.read).toEqual(['https://example.com/v1.35.1.sha256']);
  });

  test('the leader signals the Node, and every answer says where it is', async () => {
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject(
      underWay('w1 is signalled; its agent has not answered yet'),
    );
    scene.report('w1', 'Downloading');
    const answer = await scene.ask('w1');
    expect(answer).toMatchObject(underWay('w1 is at Downloading'));
    await scene.lead('w1');
    await scene.clock.advance(60_000);
    expect(await scene.ask('w1')).toEqual(answer);
  });

  test('while nothing changes, a replica that follows the Nodes asks for the Machine alone', async () => {
    const before = scene.api.calls.length;
    for (const settings of [{}, { partial: 'deny' }])
      expect(await scene.ask('w1', 'v1.35.1', settings)).toMatchObject(
        underWay('w1 is at Downloading'),
      );
    expect(scene.api.calls.slice(before)).toEqual(['get machines/m-w1', 'get machines/m-w1']);
    expect(await scene.ask('w1', 'v1.35.1', { disableInPlaceUpdates: 'true' })).toMatchObject({
      status: 'Failure',
    });
    expect(await scene.ask('w1', 'v1.35.9')).toMatchObject({ status: 'Failure' });
  });

  test('done by the report of its agent is not done', async () => {
    scene.report('w1', 'Completed');
    expect((await scene.ask('w1')).retryAfterSeconds).toBe(2);
    await scene.lead('w1');
    expect(await scene.ask('w1')).toMatchObject(
      underWay('node w1 was updated, but its kubelet reports v1.35.0 instead of v1.35.1'),
    );
  });

  test('done, as often as it is asked', async () => {
    scene.kubelet('w1', 'v1.35.1');
    expect(await scene.ask('w1')).toMatchObject(DONE);
    const before = scene.api.calls.filter((call) => call.startsWith('replace'));
    expect(await scene.ask('w1')).toMatchObject(DONE);
    expect(scene.api.calls.filter((call) => call.startsWith('replace'))).toEqual(before);
  });

  test('the next version begins anew, and what its agent said of the last one does not count', async () => {
    scene.want('w1', 'v1.35.2');
    await scene.ask('w1', 'v1.35.2');
    await scene.lead('w1');
    expect(await scene.ask('w1', 'v1.35.2')).toMatchObject(
      underWay('w1 is signalled; its agent has not answered yet'),
    );
    expect(decodeSignal(scene.node('w1').metadata.annotations)?.command.version).toBe('v1.35.2');
  });
});

test('a kubelet that never reports the version ends the wait with a failure, and one that does at last with success', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1');
  await scene.lead('w1');
  scene.report('w1', 'Completed');
  await scene.lead('w1');
  expect((await scene.ask('w1')).status).toBe('Success');
  await scene.clock.advance(10 * 60_000 + 1);
  expect(await scene.ask('w1')).toMatchObject(
    failed(
      'node w1 was updated more than 10 minutes ago, but its kubelet reports v1.35.0 instead of v1.35.1; check that spec.version names what the payload installs',
    ),
  );
  scene.kubelet('w1', 'v1.35.1');
  expect(await scene.ask('w1')).toMatchObject(DONE);
});

test('a release of k0s is done when its kubelet says what it calls itself', async () => {
  const scene = new MachineScene(['w1']);
  const release = 'v1.35.1+k0s.2';
  scene.want('w1', release);
  await scene.ask('w1', release);
  await scene.lead('w1');
  scene.report('w1', 'Completed');
  await scene.lead('w1');
  expect(await scene.ask('w1', release)).toMatchObject(
    underWay('node w1 was updated, but its kubelet reports v1.35.0 instead of v1.35.1+k0s'),
  );
  scene.kubelet('w1', 'v1.35.1+k0s');
  expect(await scene.ask('w1', release)).toMatchObject(DONE);
  // The kubelets of both releases report the same version. So the next release is done only when its agent has reported
  // it.
  scene.want('w1', 'v1.35.1+k0s.3');
  expect(await scene.ask('w1', 'v1.35.1+k0s.3')).toMatchObject(
    underWay('node w1 is about to start'),
  );
});

test('a new version waits until the update in progress has ended', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1');
  await scene.lead('w1');
  scene.report('w1', 'Restart');
  scene.want('w1', 'v1.35.2');
  expect(await scene.ask('w1', 'v1.35.2')).toMatchObject(
    underWay('waiting for the update to v1.35.1: w1 is at Restart'),
  );
  expect(updateOn(scene.node('w1'))?.version).toBe('v1.35.1');
  scene.report('w1', 'Completed');
  await scene.lead('w1');
  expect(await scene.ask('w1', 'v1.35.2')).toMatchObject(underWay('node w1 is about to start'));
  expect(updateOn(scene.node('w1'))?.version).toBe('v1.35.2');
});

test('a failed update fails every call until the update request is removed from the Node', async () => {
  const scene = new MachineScene(['w1']);
  await scene.ask('w1');
  await scene.lead('w1');
  scene.report('w1', 'Failed');
  await scene.lead('w1');
  const why = "w1: see the node's log for the reason";
  expect(await scene.ask('w1')).toMatchObject(failed(why));
  expect(await scene.ask('w1')).toMatchObject(failed(why));
  scene.api.change(nodes, 'w1', (node) => withoutRequest(node));
  expect(await scene.ask('w1')).toMatchObject(underWay('node w1 is about to start'));
});

test('what was ordered of one update does not hold for the next', async () => {
  const scene = new MachineScene(['w1']);
  scene.api.change(nodes, 'w1', (node) => ({
    ...node,
    metadata: {
      ...node.metadata,
      annotations: {
        ...node.metadata.annotations,
        [ABORT_ANNOTATION]: 'not that one',
        mine: 'yes',
      },
    },
  }));
  await scene.ask('w1');
  expect(scene.node('w1').metadata.annotations).toMatchObject({ mine: 'yes' });
  expect(scene.node('w1').metadata.annotations).not.toHaveProperty(ABORT_ANNOTATION);
});

test('two calls at once ask for one update', async () => {
  const scene = new MachineScene(['w1']);
  const answers = await Promise.all([scene.ask('w1'), scene.ask('w1')]);
  expect(answers.map(({ message }) => message)).toEqual([
    'node w1 is about to start',
    'the Machine changed meanwhile',
  ]);
  expect(scene.api.calls.filter((call) => call === 'replace nodes/w1')).toHaveLength(1);
  const { uid } = updateOn(scene.node('w1')) ?? {};
  await scene.lead('w1');
  expect(updateOn(scene.node('w1'))?.uid).toBe(uid);
});

test('the kubelet writes its Node between look and request: the next call writes it', async () => {
  const scene = new MachineScene(['w1']);
  scene.api.before('replace nodes/w1', () => scene.kubelet('w1', 'v1.35.0'));
  expect(await scene.ask('w1')).toMatchObject(underWay('node w1 is about to start'));
  expect(updateOn(scene.node('w1'))).toBeUndefined();
  await scene.ask('w1');
  expect(updateOn(scene.node('w1'))).toBeDefined();
});

test('a Node that is there already needs nothing', async () => {
  const scene = new MachineScene(['w1']);
  scene.kubelet('w1', 'v1.35.1');
  expect(await scene.ask('w1')).toMatchObject(DONE);
  expect(updateOn(scene.node('w1'))).toBeUndefined();
});
