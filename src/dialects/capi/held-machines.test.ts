/** Shows what a hold means for owners of each kind. */
import { expect, test } from 'vitest';
import { advice } from './advice.ts';

test.each([
  ['Machine', 'prod/w1', undefined],
  [
    'MachineDeployment',
    'prod/pool',
    'while Cluster API waits for a held Machine that it has chosen, this Machine uses up room of MachineDeployment prod/pool (maxUnavailable), so other Machines of it may wait',
  ],
  [
    'KubeadmControlPlane',
    'prod/plane',
    'while Cluster API waits for a held Machine that it has chosen, KubeadmControlPlane prod/plane updates no other Machine',
  ],
])('a hold of a node of a plan for a %s', (kind, name, clause) => {
  expect(advice.effectOfHolds({ dialect: 'capi', kind, name })).toBe(clause);
});

test.each([
  ['Machine', 'refit rollback machine/pool -n prod', 'refit retry prod/pool'],
  [
    'MachineDeployment',
    'refit rollback machinedeployment/pool -n prod',
    'refit retry capi/prod/pool',
  ],
])('the commands about a plan for a %s name its kind', (kind, back, again) => {
  const plan = { dialect: 'capi', kind, name: 'prod/pool' };
  expect(advice.goBack({ ...plan, phase: 'failed' }).commands).toEqual([back]);
  expect(advice.startOver(plan).commands).toEqual([again]);
});
