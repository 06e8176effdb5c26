/** The proof of upgrades over SSH: a kubeadm cluster from one patch to the next, by the system's ssh client, on a real API server. */
import { expect, test } from 'vitest';
import { startJavascriptServer } from '../../tools/sshd/javascript-server.ts';
import { openScene, TO } from '../kubeadm/suite.ts';

test('first', async () => {
  await using scene = await openScene(startJavascriptServer);
  const run = scene.refit('apply', '-m', await scene.cluster.manifest(TO), '--yes', '--lease-duration', '2s');
  const code = await run.ended;
  console.log(run.stdout, run.stderr);
  expect(code).toBe(0);
});
