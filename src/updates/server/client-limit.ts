/** Keeps one client from taking all connections of a server. */
import type { Server, Socket } from 'node:net';

/** Closes a new connection of a client that has `most` of them already. */
export function limitEachClient(server: Server, most: number): void {
  const open = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    const client = clientOf(socket.remoteAddress ?? '');
    const count = open.get(client) ?? 0;
    if (count >= most) return socket.destroy();
    open.set(client, count + 1);
    return socket.once('close', () => {
      const left = (open.get(client) ?? 1) - 1;
      if (left === 0) open.delete(client);
      else open.set(client, left);
    });
  });
}

/** The address; of IPv6 its first 64 bits, because a client may have all of the rest. */
export function clientOf(address: string): string {
  if (address.includes('.')) return address.replace(/^.*:/, '');
  const [head = [], tail = []] = address.split('::').map((part) => part.split(':'));
  const zeros = Array.from({ length: Math.max(0, 8 - head.length - tail.length) }, () => '0');
  return [...head, ...zeros, ...tail].slice(0, 4).join(':');
}
