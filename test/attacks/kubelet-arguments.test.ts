/** Tests that a request on a Node cannot make its kubelet run with arguments that Cluster API may not change. */
import { rm, symlink } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { argument, ConfiguredHost, FLAGS, file } from '../agent/configured-host.ts';
import { useCluster } from './rig.ts';

const cluster = useCluster();

test.each([
  argument('config', '/tmp/x'),
  argument('root-dir', '/tmp'),
  argument('kubeconfig', 'x'),
  argument('v=4 --config', 'x'),
  argument('v', '4 --config=/tmp/x'),
  argument('v', '4"\nLD_PRELOAD="/tmp/x.so'),
  argument('v', '$(id)'),
  argument('v', '10'),
  argument('v\n', '4'),
  file('/var/lib/kubelet/kubeadm-flags.env', 'KUBELET_KUBEADM_ARGS="--config=/tmp/x"'),
])('refused, and nothing is restarted: %j', async (item) => {
  await using host = await ConfiguredHost.arrive(cluster());
  const before = await host.read(FLAGS);
  host.start();
  const { failure } = await host.answer(await host.ask(argument('v', '4'), item));
  expect(failure).toContain('--node-configuration does not allow');
  expect([await host.read(FLAGS), await host.restarts()]).toEqual([before, 0]);
});

test('a file of arguments that is a symbolic link is neither read nor replaced', async () => {
  await using host = await ConfiguredHost.arrive(cluster());
  await host.put('victim/flags', 'KUBELET_KUBEADM_ARGS="--v=2"\n');
  await rm(host.at(FLAGS));
  await symlink(host.at('victim/flags'), host.at(FLAGS));
  host.start();
  const { failure } = await host.answer(await host.ask(argument('v', '4')));
  expect(failure).toContain('must be a regular file');
  expect([await host.read('victim/flags'), await host.restarts()]).toEqual([
    'KUBELET_KUBEADM_ARGS="--v=2"\n',
    0,
  ]);
});
