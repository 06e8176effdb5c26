/** The destination of an answer: a response of Node's HTTP server, or a stand-in. */

export interface Sink {
  statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  /** The number of bytes that are not sent to the client yet. */
  readonly writableLength: number;
  setHeader(name: string, value: number | readonly string[]): unknown;
  writeHead(code: number, headers: Record<string, string | number>): unknown;
  flushHeaders(): void;
  write(chunk: string | Buffer): unknown;
  end(body?: string): unknown;
  destroy(): unknown;
  once(event: 'close', listener: () => void): unknown;
}
