/**
 * Tests that the agent does not trust a status socket of another user, or a socket of root that names another process.
 */
import { rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect } from 'vitest';
import { NEW, OLD } from '../agent/rig.ts';
import { Attacker, attackAsNobody, NOBODY, startNode, useCluster } from './rig.ts';

useCluster();

/** Matches a message of an agent that refused the socket or obeyed it. */
const VERDICT = /"msg":"(waiting for the service|step|reported)"|no status from/;

/** Serves a status that names the given PID. */
const liar = (socket: string, pid: number): string => `
const { createServer } = require('node:http');
const status = { Version: '${OLD}', Pid: ${pid}, Role: 'worker', Workloads: true };
createServer((_request, response) => response.end(JSON.stringify(status)))
  .listen('${socket}', () => console.log('up'));
`;

attackAsNobody(
  'a socket of another user is not asked, even if it names the right process',
  async () => {
    await using attacker = await Attacker.arrive();
    await using node = await startNode();
    const socket = join(attacker.directory, 's');
    await attacker.run(process.execPath, '-e', liar(socket, node.host.pid ?? 0));
    const agent = node.startAgent('--status-socket', socket);
    await node.send('/new', NEW);
    await node.until(() => expect(agent.log.join('\n')).toMatch(VERDICT));
    expect(agent.log.join('\n')).toContain(`belongs to user ${NOBODY}`);
    expect(node.host.starts).toBe(1);
    expect(node.server.requests).toEqual([]);
  },
);

attackAsNobody.each([
  ['a daemon of root', async () => await Promise.resolve(process.ppid), 'is another service'],
  [
    'a process of another user',
    async (attacker: Attacker) => {
      await writeFile(
        join(attacker.directory, 'worker'),
        'console.log("up"); setInterval(() => {}, 1000)',
      );
      return await attacker.run(process.execPath, 'worker');
    },
    `belongs to user ${NOBODY}`,
  ],
  ['PID 1', async () => await Promise.resolve(1), 'cannot be the service'],
])('a socket of root that names %s is not believed', async (_name, find, reason) => {
  await using attacker = await Attacker.arrive();
  await using node = await startNode();
  const pid = await find(attacker);
  await node.host.stop();
  await rm(node.host.statusSocket, { force: true });
  const server = createServer((_request, response) =>
    response.end(JSON.stringify({ Version: OLD, Pid: pid, Role: 'worker', Workloads: true })),
  ).listen(node.host.statusSocket);
  try {
    const agent = node.startAgent();
    await node.send('/new', NEW);
    await node.until(() => expect(agent.log.join('\n')).toMatch(VERDICT));
    expect(agent.log.join('\n')).toContain(`PID ${pid}, which ${reason}`);
    expect(node.server.requests).toEqual([]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
