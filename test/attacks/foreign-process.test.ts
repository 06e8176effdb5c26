/** Tests that the agent does not adopt a process of a local user that looks like k0s and has its own status socket. */
import { chmod, copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { findService, findServices } from '../../src/agent/service/find-services.ts';
import { Attacker, attackAsNobody } from './rig.ts';

const FAKE = `
const { createServer } = require('node:http');
const status = { Version: 'v0.0.1', Pid: process.pid, Role: 'worker', Workloads: true };
createServer((_request, response) => response.end(JSON.stringify(status)))
  .listen(process.argv[2].split('=')[1], () => console.log('up'));
`;

/** The program belongs to root, as `su` does. With its set-user-id bit, it runs as root, whichever user starts it. */
attackAsNobody.each([
  ['a program', 0o755, ''],
  ['a set-user-id program', 0o4755, ''],
  [
    'a set-user-id program that became root in every way, as sudo does,',
    0o4755,
    'process.setuid(0);',
  ],
])('%s that another user started is never the service', async (_name, mode, first) => {
  await using attacker = await Attacker.arrive();
  const program = join(attacker.directory, 'k0s');
  const socket = join(attacker.directory, 's');
  await copyFile(process.execPath, program);
  await chmod(program, mode);
  await writeFile(join(attacker.directory, 'worker'), first + FAKE);
  const pid = await attacker.run(program, 'worker', `--status-socket=${socket}`);
  expect(findServices().map((service) => service.pid)).not.toContain(pid);
});

attackAsNobody(
  'a process beside the service that names its file is never restarted in its place',
  async () => {
    await using attacker = await Attacker.arrive();
    const script = join(attacker.directory, 'k0s');
    await writeFile(script, 'echo up; kill -STOP $$');
    await attacker.run('/bin/sh', script, 'worker');
    // Its parent is a process of the user of the agent, as PID 1 is the parent of every orphan and of every unit.
    expect(findService(script, { parent: process.pid, started: '' })).toBeUndefined();
  },
);
