/** The contract of what a text tells people to do. */

/** What a person does, for a sentence and for a program. */
export interface Guidance {
  /** A clause without a full stop. */
  readonly clause: string;
  /**
   * The commands of the clause, in their order. A word in capitals, such as FILE or TEXT, stands for what only the person
   * knows. Empty if the clause names no command.
   */
  readonly commands: readonly string[];
}

/** An advice in its JSON form: in which situation the plan is, what to do, and what that ends. */
export interface AdviceJson {
  /** The name of the situation, such as `NodesFailed`. */
  readonly situation: string;
  /** The names of the nodes that the advice is about; absent if it is about the whole plan. */
  readonly nodes?: readonly string[] | undefined;
  /** The advice in sentences. */
  readonly text: string;
  /** The commands that the text names first, in their order. A word in capitals stands for what only the reader knows. */
  readonly commands: readonly string[];
  /** What comes of it, as a clause. */
  readonly outcome: string;
}
