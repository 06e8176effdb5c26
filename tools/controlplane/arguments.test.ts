/** Tests that a kube-controller-manager is told only of controllers that its version has. */
import { expect, test } from 'vitest';
import { controllersArgument } from './arguments.ts';

test.each([
  ['v1.30.14', []],
  ['v1.32.0', ['kube-apiserver-serving-clustertrustbundle-publisher']],
  ['v1.36.3', ['kube-apiserver-serving-clustertrustbundle-publisher', 'podgroup-protection']],
])('%s: the later controllers that are left out are %j', (version, later) => {
  const left = controllersArgument(version).split(',');
  expect(left).toEqual(expect.arrayContaining(['--controllers=*', '-endpointslice-controller']));
  const all = ['kube-apiserver-serving-clustertrustbundle-publisher', 'podgroup-protection'];
  expect(all.filter((name) => left.includes(`-${name}-controller`))).toEqual(later);
});
