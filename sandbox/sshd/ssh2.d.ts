/** Types for the parts of the package `ssh2` that the sandbox uses. The package itself contains no types. */
declare module 'ssh2' {
  import type { Readable, Writable } from 'node:stream';

  export interface Channel extends Readable, Writable {
    readonly stderr: Writable;
    exit(code: number): void;
    end(): this;
  }

  export interface Session {
    on(
      event: 'exec',
      listener: (accept: () => Channel, reject: () => void, info: { command: string }) => void,
    ): this;
  }

  export interface Attempt {
    readonly method: string;
    readonly key: { readonly algo: string; readonly data: Buffer };
    readonly blob?: Buffer;
    readonly hashAlgo?: string;
    readonly signature?: Buffer;
    accept(): void;
    reject(methods?: string[]): void;
  }

  export interface Connection {
    on(event: 'authentication', listener: (attempt: Attempt) => void): this;
    on(event: 'session', listener: (accept: () => Session) => void): this;
    on(event: 'error', listener: (error: Error) => void): this;
    on(event: 'close', listener: () => void): this;
    end(): void;
  }

  export interface PublicKey {
    getPublicSSH(): Buffer;
    verify(data: Buffer, signature: Buffer, algorithm?: string): boolean;
  }

  class Server {
    constructor(options: { hostKeys: Buffer[] }, onConnection: (connection: Connection) => void);
    listen(port: number, address: string, onListening: () => void): this;
    address(): { port: number };
    close(onClosed: () => void): this;
  }

  const ssh2: { Server: typeof Server; utils: { parseKey(text: Buffer): PublicKey } };
  export default ssh2;
}
