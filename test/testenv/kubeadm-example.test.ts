/** Tests the example manifest of kubeadm: carries it out on stand-in hosts over SSH and on the real API server. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import { openScene, type Run, type Scene, TO, versions } from '../support/kubeadm/suite.ts';

interface Manifest {
  readonly hosts: readonly { readonly name: string; readonly role: string }[];
}

let scene: Scene;
let example: Manifest;

beforeAll(async () => {
  example = parse(await readFile('examples/kubeadm/cluster.yaml', 'utf8')) as Manifest;
  scene = await openScene(startJavascriptServer, { hosts: 3 });
});
afterAll(async () => await scene[Symbol.asyncDispose]());

/**
 * Runs the command with the example manifest. Addresses, keys and binaries exist only in this test environment, so they
 * are taken from the manifest of the test.
 */
async function run(command: string, ...flags: readonly string[]): Promise<Run> {
  const path = await scene.cluster.manifest(TO, (manifest) => {
    const { version, kubeconfig, hosts, binaries, ssh } = manifest;
    Object.assign(manifest, example, { version, kubeconfig, hosts, binaries, ssh });
  });
  const started = scene.refit(command, ...flags, '-m', path);
  await started.ended;
  return started;
}

test('the hosts of the example have the names and roles of this cluster', () => {
  const rolesOf = (hosts: Manifest['hosts']) => hosts.map(({ name, role }) => [name, role]);
  expect(rolesOf(example.hosts)).toEqual(rolesOf(scene.cluster.hosts));
});

test('refit kubeadm plan shows it, and breaks no rule', async () => {
  const { ended, stdout, stderr } = await run('plan');
  expect([await ended, stderr]).toEqual([0, '']);
  for (const { name } of example.hosts) expect(stdout).toContain(name);
});

test('refit kubeadm apply carries it out', async () => {
  const { ended } = await run('apply', '--yes');
  expect(await ended).toBe(0);
  expect(await versions(scene)).toEqual(example.hosts.map(({ name }) => [name, TO]));
});
