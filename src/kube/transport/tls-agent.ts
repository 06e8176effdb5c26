/** Owns TLS connections that can be cut off: what was written to one but has not arrived is then lost for good. */
import type { ClientRequestArgs } from 'node:http';
import https from 'node:https';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';

/** The TCP connection below each TLS connection, which hides it. */
const wires = new WeakMap<object, Socket>();

/** Makes the TCP connection itself, as only that can be reset. */
export class TlsAgent extends https.Agent {
  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, stream: Duplex) => void,
  ): Duplex | null | undefined {
    const wire = connect(options as TcpNetConnectOpts);
    const socket = super.createConnection({ ...options, socket: wire } as ClientRequestArgs, callback);
    if (socket) wires.set(socket, wire);
    return socket;
  }
}

/**
 * Resets the connection. One that is closed in order goes on delivering what the kernel holds: after a partition the
 * server would get a write that its sender gave up long ago.
 */
export function cutOff(socket: Socket): void {
  (wires.get(socket) ?? socket).resetAndDestroy();
}
