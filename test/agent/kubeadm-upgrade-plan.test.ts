/**
 * Tests what the first control-plane host reports about `kubeadm upgrade plan`: runs the script of Refit, with the
 * output of a real kubeadm v1.36.3.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { wholeScript } from '../../src/dialects/kubeadm/host/filled-script.ts';
import { run } from '../../tools/controlplane/run.ts';

const recorded = await readFile('test/fixtures/kubeadm/plan-v1.36.3.json', 'utf8');
const manual = recorded.replace('"manualUpgradeRequired": false', '"manualUpgradeRequired": true');
const kubeProxy =
  'warning kubeadm: it cannot read the kubeproxy.config.k8s.io in the cluster: convert its ConfigMap in';

test.each([
  ['as recorded: nothing', recorded, 0, ''],
  ['nothing, where the API server has the version already', '', 0, ''],
  [
    'a configuration that a person must convert, by its group',
    manual,
    0,
    `${kubeProxy} kube-system\n`,
  ],
  ['a failure stops', undefined, 1, ''],
])('%s', async (_name, printed, code, said) => {
  const root = await mkdtemp(join(tmpdir(), 'refit-upgrade-plan-'));
  onTestFinished(async () => await rm(root, { recursive: true }));
  await mkdir(join(root, 'var/lib/refit/staged'), { recursive: true });
  await writeFile(join(root, 'plan'), printed ?? '');
  const body = printed === undefined ? 'echo no >&2; exit 1' : `cat '${join(root, 'plan')}'`;
  await writeFile(join(root, 'var/lib/refit/staged/kubeadm'), `#!/bin/sh\n${body}\n`, {
    mode: 0o755,
  });
  const input = `VERSION=v1.36.3\n${wholeScript('parts/upgrade-plan.sh')}upgrade_plan\n`;
  const { ok, stdout } = await run('sh', ['-s'], { environment: { REFIT_ROOT: root }, input });
  expect([ok ? 0 : 1, stdout]).toEqual([code, said]);
});
