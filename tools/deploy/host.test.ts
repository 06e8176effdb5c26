/**
 * Tests the files of deploy/host: systemd accepts the unit, a shell accepts the script, and the agent accepts the
 * flags.
 */
import { existsSync, globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readFlagsFile } from '../../src/agent/flags-file.ts';
import { parseAgentOptions } from '../../src/agent/options.ts';
import { AGENT_FLAGS } from '../../src/install/host/program.ts';
import { run } from '../controlplane/run.ts';
import { AGENT_ENVIRONMENT } from './agent-environment.ts';

const HOST = join(import.meta.dirname, '../../deploy/host');
const ANALYZE = '/usr/bin/systemd-analyze';
const BINARY = '/usr/local/bin/refit';
const VARIABLES = Object.entries(AGENT_ENVIRONMENT).map(([name, value]) => `${name}=${value}`);
const OPTIONS = `--node-options=${AGENT_FLAGS.join(' ')}`;

async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'refit-host-'));
  onTestFinished(async () => await rm(directory, { recursive: true }));
  return directory;
}

test('systemd takes the unit', async (context) => {
  context.skip(!existsSync(ANALYZE), `no ${ANALYZE}: Debian's package systemd has it`);
  const directory = await temporary();
  const unit = await readFile(join(HOST, 'refit-agent.service'), 'utf8');
  expect(unit).toContain(`\nEnvironment=${VARIABLES.join(' ')}\n`);
  expect(unit).toContain(`ExecStart=${BINARY} "${OPTIONS}" agent\n`);
  const verify = async (text: string) => {
    const path = join(directory, 'refit-agent.service');
    // systemd also checks that the command exists, so the test replaces the command.
    await writeFile(path, text.replaceAll(BINARY, process.execPath));
    return await run(ANALYZE, ['verify', '--man=no', path]);
  };
  expect(await verify(unit)).toEqual({ ok: true, stdout: '', stderr: '' });
  expect((await verify(unit.replace('Restart=always', 'Restart=often'))).stderr).toContain('often');
});

test('a shell takes the script for OpenRC', async () => {
  const path = join(HOST, 'refit-agent.initd');
  expect(await run('sh', ['-n', path])).toEqual({ ok: true, stdout: '', stderr: '' });
  const { stdout } = await run('sh', [
    '-c',
    `. ${path}; echo "$supervisor $command $command_args"; env`,
  ]);
  expect(stdout.split('\n')).toEqual(
    expect.arrayContaining([`supervise-daemon ${BINARY} '${OPTIONS}' agent`, ...VARIABLES]),
  );
});

test.each(globSync('*.yaml', { cwd: HOST }))('the agent takes the flags of %s', async (file) => {
  // The agent accepts only files to which no other user may write.
  const path = join(await temporary(), file);
  await writeFile(path, await readFile(join(HOST, file)), { mode: 0o600 });
  const flags = await readFlagsFile(path);
  expect(parseAgentOptions(flags)?.kubeconfig).toMatch(/^\//);
});
