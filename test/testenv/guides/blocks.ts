/** Reads the blocks of a guide that a test can follow. A reader pastes these blocks into a shell or a file, in order. */
import { readFileSync } from 'node:fs';

export interface Block {
  /** `<heading>: <first line>` */
  readonly title: string;
  readonly text: string;
  /**
   * The word after the language of the block. `run`: the commands end successfully. `service`: the command keeps
   * running. `worker`, `controller`: the command keeps running on each host of this role. Any other word is the name of
   * the file for the text.
   */
  readonly use: string;
}

/** Returns the blocks with a word after the language. All other blocks are examples. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(page, 'utf8');
  const found = text.matchAll(
    /^(?:#+ (?<heading>[^\n]*)|```[a-z]*(?: (?<use>\S+))?\n(?<body>.*?)^```)$/gms,
  );
  let heading = '';
  const blocks: Block[] = [];
  for (const { groups = {} } of found) {
    heading = groups['heading'] ?? heading;
    const { use, body = '' } = groups;
    if (use !== undefined)
      blocks.push({ title: `${heading}: ${body.split('\n')[0]}`, text: body, use });
  }
  return blocks;
}
