//! The item store on DynamoDB, and the same store in memory.
