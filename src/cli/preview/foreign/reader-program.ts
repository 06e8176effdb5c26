/**
 * Returns the program of the worker thread that reads the text of a viewer. A build of Refit replaces this file with one that returns the
 * finished program as a text, because the one-file binary has no files.
 */
export interface ReaderProgram {
  /** A file, or JavaScript if `isText` is true. */
  readonly program: string | URL;
  readonly isText: boolean;
}

export function readerProgram(): ReaderProgram {
  return { program: new URL('reader-worker.ts', import.meta.url), isText: false };
}
