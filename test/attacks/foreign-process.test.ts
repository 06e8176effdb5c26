/** A local account starts something that looks like k0s, with a status socket of its own, and waits for the agent to adopt it. */
import { copyFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { findServices } from '../../src/agent/service/find-services.ts';
import { Attacker, attackAsNobody } from './rig.ts';

const FAKE = `
const { createServer } = require('node:http');
const status = { Version: 'v0.0.1', Pid: process.pid, Role: 'worker', Workloads: true };
createServer((_request, response) => response.end(JSON.stringify(status)))
  .listen(process.argv[2].split('=')[1], () => console.log('up'));
`;

/** A process of nobody's with the command line of a k0s worker, from a program with this mode. */
async function startFake(attacker: Attacker, mode: number): Promise<{ pid: number; socket: string; program: string }> {
  const [program, socket] = [join(attacker.directory, 'k0s'), join(attacker.directory, 's')];
  await copyFile(process.execPath, program);
  await attacker.own(program, mode);
  await writeFile(join(attacker.directory, 'worker'), FAKE);
  const pid = await attacker.run(program, 'worker', `--status-socket=${socket}`);
  return { pid, socket, program };
}

/** /proc shows a program that is executable but not readable as root's. */
attackAsNobody.each([
  ['a readable program', 0o755],
  ["a program that /proc shows as root's", 0o111],
])('%s of another user is never the service', async (_name, mode) => {
  await using attacker = await Attacker.arrive();
  const { pid } = await startFake(attacker, mode);
  expect((await findServices()).map((service) => service.pid)).not.toContain(pid);
});
