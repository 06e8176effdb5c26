/** Tests that a control plane that cannot start says why and leaves nothing behind. */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { startControlPlane } from '../../tools/controlplane/control-plane.ts';
import { processesNaming } from './processes.ts';

let root: string;
let assets: string;
let temporary: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'refit-failed-start-'));
  [assets = '', temporary = ''] = ['assets', 'temporary'].map((name) => join(root, name));
  for (const path of [assets, temporary]) mkdirSync(path);
  const given = process.env['KUBEBUILDER_ASSETS'];
  if (given)
    for (const name of readdirSync(given)) symlinkSync(join(given, name), join(assets, name));
  vi.stubEnv('KUBEBUILDER_ASSETS', assets);
  vi.stubEnv('TMPDIR', temporary);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

test.each(['etcd', 'kube-apiserver', 'kwok'] as const)('%s ends at once', async (broken) => {
  rmSync(join(assets, broken), { force: true });
  writeFileSync(join(assets, broken), '#!/bin/sh\necho no such flag\nexit 7\n', { mode: 0o755 });
  await expect(startControlPlane({ components: ['kube-scheduler', 'kwok'] })).rejects.toMatchObject(
    {
      code: 'REFIT_TESTENV',
      message: `${broken} ended with exit code 7: no such flag`,
    },
  );
  expect(processesNaming(temporary)).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
});
