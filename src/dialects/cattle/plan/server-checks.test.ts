/** Tests for which Plans the API servers are asked, and which API servers. */
import { expect, test } from 'vitest';
import { node, of, worldOf } from '../../../../test/support/builders/cattle-decisions.ts';
import type { Node } from '../../../kube/resources.ts';
import { cattleView } from './cattle-dialect.ts';
import { serverChecksOf, serverEndpoints } from './version-rules.ts';

const ROLE = 'node-role.kubernetes.io';
const reachable = (name: string, role: string | undefined, address?: string): Node => ({
  ...node(name, role === undefined ? {} : { [`${ROLE}/${role}`]: 'true' }),
  status: { addresses: address === undefined ? [] : [{ type: 'InternalIP', address }] },
});

test('every server with an InternalIP is asked, and no agent, no member of etcd alone, and no server without an address', () => {
  const nodes = [
    reachable('s1', 'control-plane', '10.0.0.1'),
    reachable('s2', 'control-plane'),
    reachable('e1', 'etcd', '10.0.0.3'),
    reachable('a1', undefined, '10.0.0.4'),
  ];
  const world = worldOf({ plan: of(), nodes });
  expect(serverEndpoints(world)).toEqual([{ name: 's1', host: '10.0.0.1' }]);
  expect(cattleView.endpoints(world)).toEqual(serverEndpoints(world));
});

test.each<[string, string, object, boolean]>([
  ['installs K3s', 'rancher/k3s-upgrade', {}, true],
  ['installs RKE2', 'example.com/rke2-upgrade:v1.36.3-rke2r1', {}, true],
  ['has a listed mirror', 'example.com/mirror', { installers: ['example.com/mirror'] }, true],
  ['installs something else', 'example.com/bios', {}, false],
  ['runs with the checks switched off', 'rancher/k3s-upgrade', { checksVersions: false }, false],
])('whether the API servers are asked for a Plan that %s', (_name, image, config, asked) => {
  const plan = of({ upgrade: { image } });
  const isAskedAt = (address?: string): boolean => {
    const world = worldOf({ plan, nodes: [reachable('s1', 'control-plane', address)] });
    return serverChecksOf(plan, 'v1.36.3-k3s1', world, config).serverChecks !== undefined;
  };
  expect([isAskedAt('10.0.0.1'), isAskedAt()]).toEqual([asked, false]);
});
