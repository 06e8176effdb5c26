/** Tests that a kube-controller-manager is told only of controllers that its version has. */
import { expect, test } from 'vitest';
import { controllersArgument } from './arguments.ts';

const PUBLISHER = 'kube-apiserver-serving-clustertrustbundle-publisher';
const VARYING = [PUBLISHER, 'podgroup-protection', 'service-lb'];

test.each([
  ['v1.30.14', ['service-lb']],
  ['v1.32.0', [PUBLISHER, 'service-lb']],
  ['v1.36.3', VARYING],
  ['v1.37.2', [PUBLISHER, 'podgroup-protection']],
])('%s: of the controllers that not every release has, %j are left out', (version, expected) => {
  const left = controllersArgument(version).split(',');
  expect(left).toEqual(expect.arrayContaining(['--controllers=*', '-endpointslice-controller']));
  expect(VARYING.filter((name) => left.includes(`-${name}-controller`))).toEqual(expected);
});
