/** Shows what `refit history` and `refit updates` say of a cluster without the kinds of Refit, such as one of kubeadm. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { startSandboxPlane } from '../../../sandbox/cluster/plane.ts';
import { systemClock } from '../../util/clock.ts';
import { RefitError } from '../../util/errors.ts';
import { checkUpdates, showUpdates } from '../updates/updates-command.ts';
import { showHistory } from './history-command.ts';

let kubeconfig: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'refit-kinds-'));
  const plane = await startSandboxPlane(folder);
  kubeconfig = await plane.kubeconfig('admin');
  return async () => {
    await plane.stop();
    await rm(folder, { recursive: true });
  };
});

const output = {
  write: () => undefined,
  hasColours: false,
  isTerminal: false,
  size: () => ({ columns: 80, rows: 24 }),
};
const parts = { clock: systemClock, abort: new AbortController().signal, output };

async function textOf(command: Promise<unknown>): Promise<string> {
  const error: unknown = await command.catch((thrown: unknown) => thrown);
  return error instanceof RefitError ? error.text : 'no error';
}

test('refit history says that such a cluster records no runs, and that kubeadm needs no kind', async () => {
  expect(await textOf(showHistory(undefined, { kubeconfig }, parts))).toMatch(
    /kind NodeRollout, so it records no runs \(`refit kubeadm` works without it, and `refit status` shows its plan; /,
  );
});

test('refit updates says that such a cluster follows no channel, and who needs the kind', async () => {
  const told =
    /kind UpdateConfig, so it follows no channel \(an UpdateConfig makes Plans of k0s only: .* no other cluster needs it\)/;
  expect(await textOf(showUpdates({ kubeconfig, output: 'text' }, parts))).toMatch(told);
  expect(await textOf(checkUpdates(undefined, { kubeconfig, output: 'text' }, parts))).toMatch(
    told,
  );
});
